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
  ReplyHeader reply = ReplyWithTime(request, context_.server.store.Now(context_.now.server_time));
  if (context_.server.standing != nullptr) {
    reply.primary_lease_ms = context_.server.standing->LeaseLeftMs(context_.server.boot.Now());
    reply.clock.leases_from = context_.server.standing->partitions().leases_from();
  }
  const Superblock superblock = context_.server.store.superblock();
  const IndexNews news{superblock.index, superblock.next_index};
  if (known.acknowledged > session->index_generation &&
      known.acknowledged <= news.index.generation) {
    session->index_generation = known.acknowledged;
    TellGeneration();
  }
  std::optional<uint32_t> buffer;
  if (news.IsNewsTo(known)) buffer = replies_.TakeBuffer(*connection);
  if (!buffer) return replies_.Send(connection, reply);
  const std::string_view value = news.bytes();
  reply.value_bytes = static_cast<uint32_t>(value.size());
  replies_.SendInBuffer(connection, *buffer, reply, value.data());
}

// A client that connects later gets a grant of this generation, or a later one.
void IndexGrowth::TellGeneration() {
  uint64_t generation = context_.server.store.index_generation();
  if (context_.counters.index_generation.value() == generation) return;
  for (const auto& [id, connection] : context_.connections) {
    generation = std::min(generation, connection->session->index_generation);
  }
  context_.counters.index_generation.Set(generation);
}

}  // namespace gannet
