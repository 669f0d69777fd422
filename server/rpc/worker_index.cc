// Worker: what heartbeats tell of an index that grows (common/protocol/index_news.h).

#include <algorithm>
#include <cstring>

#include "common/protocol/index_news.h"
#include "server/rpc/worker.h"

namespace gannet {

// News that finds no buffer waits for the next heartbeat.
void Worker::OnHeartbeat(ServerConnection* connection, const RequestHeader& request) {
  const IndexKnown known{request.heartbeat.index_acknowledged, request.heartbeat.index_newest};
  Session* const session = connection->session;
  ReplyHeader reply = ReplyWithTime(request, store_->NowMs(now_.wall_ms));
  const Superblock superblock = node_->store->superblock();
  const IndexNews news{superblock.index, superblock.next_index};
  if (known.acknowledged > session->index_generation &&
      known.acknowledged <= news.index.generation) {
    session->index_generation = known.acknowledged;
    TellIndexGeneration();
  }
  std::optional<uint32_t> buffer;
  if (news.IsNewsTo(known) && replies_.MayTake(connection->reply_buffers)) buffer = replies_.Take();
  if (!buffer) return Reply(connection, reply);
  const std::string_view value = news.bytes();
  reply.value_bytes = static_cast<uint32_t>(value.size());
  const std::span<std::byte> bytes = replies_.Bytes(*buffer);
  std::memcpy(bytes.data(), &reply, sizeof(reply));
  std::memcpy(bytes.data() + sizeof(reply), value.data(), value.size());
  if (batch_.AddReply(connection, *buffer, sizeof(reply) + value.size())) {
    ++connection->answers_in_chain;
  }
}

// A client that connects later gets a grant of this generation, or a later one.
void Worker::TellIndexGeneration() {
  uint64_t generation = node_->store->index_generation();
  if (counters_.index_generation.value() == generation) return;
  for (const auto& [id, connection] : connections_) {
    generation = std::min(generation, connection->session->index_generation);
  }
  counters_.index_generation.Set(generation);
}

}  // namespace gannet
