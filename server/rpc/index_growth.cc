#include "server/rpc/index_growth.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "common/protocol/index_news.h"
#include "server/rpc/dispatcher.h"

namespace gannet {

// News that finds no buffer waits for the next heartbeat.
void IndexGrowth::OnHeartbeat(ServerConnection* connection, const RequestHeader& request) {
  const IndexKnown known{request.heartbeat.index_acknowledged, request.heartbeat.index_newest};
  Session* const session = connection->session;
  ReplyHeader reply = ReplyWithTime(request, given_.store->NowMs(given_.now->wall_ms));
  if (given_.standing != nullptr) {
    reply.primary_lease_ms = given_.standing->LeaseLeftMs((*given_.lease_now_ns)());
    reply.clock.leases_from = given_.standing->partitions().leases_from();
  }
  const Superblock superblock = given_.store->superblock();
  const IndexNews news{superblock.index, superblock.next_index};
  if (known.acknowledged > session->index_generation &&
      known.acknowledged <= news.index.generation) {
    session->index_generation = known.acknowledged;
    TellGeneration();
  }
  std::optional<uint32_t> buffer;
  if (news.IsNewsTo(known)) buffer = given_.replies->TakeBuffer(*connection);
  if (!buffer) return given_.replies->Send(connection, reply);
  const std::string_view value = news.bytes();
  reply.value_bytes = static_cast<uint32_t>(value.size());
  given_.replies->SendInBuffer(connection, *buffer, reply, value.data());
}

// A client that connects later gets a grant of this generation, or a later one.
void IndexGrowth::TellGeneration() {
  uint64_t generation = given_.store->index_generation();
  if (given_.counters->index_generation.value() == generation) return;
  for (const auto& [id, connection] : *given_.connections) {
    generation = std::min(generation, connection->session->index_generation);
  }
  given_.counters->index_generation.Set(generation);
}

}  // namespace gannet
