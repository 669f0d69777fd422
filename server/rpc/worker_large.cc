#include <algorithm>
#include <utility>

#include "server/rpc/worker.h"

namespace gannet {

// Values are at most kValueBytesMax long, far below what every device carries in one message, so
// each is one READ or one WRITE.

void Worker::BeginLargePut(ServerConnection* connection, const RequestView& request) {
  BeginLong(connection, request.header);
  if (connection->rdma->depth().issued == 0) {
    // It asked for a connection without READs.
    return AnswerLong(connection, ReplyTo(request.header, ReplyStatus::kInvalidArgument));
  }
  connection->puts_waiting.push_back({request.header, std::string(request.key), {}});
  PostReads(connection);
}

void Worker::PostReads(ServerConnection* connection) {
  const size_t depth = connection->rdma->depth().issued;
  while (!connection->closing && !connection->puts_waiting.empty() &&
         connection->puts_reading.size() < depth) {
    LargePut put = std::move(connection->puts_waiting.front());
    connection->puts_waiting.pop_front();
    // Reserved only now, so that requests that wait take nothing from the heap.
    std::optional<Store::Reservation> reservation =
        node_->store->Reserve(put.key, put.header.value_bytes);
    if (!reservation) {
      AnswerLong(connection, ReplyTo(put.header, ReplyStatus::kHeapFull));
      continue;
    }
    put.reservation = *reservation;
    const ibv_sge sge{reinterpret_cast<uint64_t>(reservation->value.data()), put.header.value_bytes,
                      node_->region_lkey};
    const uint64_t address = put.header.buffer_address;
    const uint32_t rkey = put.header.buffer_rkey;
    connection->puts_reading.push_back(std::move(put));
    if (!batch_.AddRead(connection, sge, address, rkey)) {
      node_->store->Abandon(connection->puts_reading.back().reservation);
      connection->puts_reading.pop_back();
    }
  }
}

void Worker::OnRead(ServerConnection* connection, bool ok) {
  LargePut put = std::move(connection->puts_reading.front());
  connection->puts_reading.pop_front();
  if (!ok || connection->closing) return node_->store->Abandon(put.reservation);
  const WriteOutcome outcome =
      node_->store->CommitPut(put.reservation, put.key, AttributesOf(put.header, now_.wall_ms),
                              ConditionsOf(put.header), now_.wall_ms);
  AnswerLong(connection, ReplyOfWrite(put.header, outcome));
}

void Worker::BeginLargeGet(ServerConnection* connection, const RequestView& request) {
  BeginLong(connection, request.header);
  if (large_gets_waiting_ >= kLargeGetsMax) {
    return AnswerLong(connection, ReplyTo(request.header, ReplyStatus::kTryAgain));
  }
  if (connection->gets_waiting.empty()) large_get_turns_.push_back(connection->id);
  connection->gets_waiting.push_back({request.header, std::string(request.key)});
  ++large_gets_waiting_;
}

// Whoever is passed over holds staging buffers, whose completion comes and brings the next turn.
void Worker::ServeLargeGets() {
  if (large_get_turns_.empty()) return;
  for (size_t turns = large_get_turns_.size(); turns > 0 && staging_.available() > 0; --turns) {
    ServerConnection* connection = Find(large_get_turns_.front());
    large_get_turns_.pop_front();
    if (connection == nullptr || connection->closing) continue;
    if (staging_.MayTake(connection->staging_buffers)) ServeNextLargeGet(connection);
    if (!connection->gets_waiting.empty()) large_get_turns_.push_back(connection->id);
  }
}

void Worker::ServeNextLargeGet(ServerConnection* connection) {
  const LargeGet get = std::move(connection->gets_waiting.front());
  connection->gets_waiting.pop_front();
  --large_gets_waiting_;
  const uint32_t staging = *staging_.Take();
  if (!ServeLargeGet(connection, get, staging)) staging_.Give(staging);
}

bool Worker::ServeLargeGet(ServerConnection* connection, const LargeGet& get, uint32_t staging) {
  const std::span<std::byte> room =
      staging_.Bytes(staging).first(std::min<size_t>(get.header.value_bytes, kValueBytesMax));
  // Looked up anew: while it waited, the value may have changed, or gone.
  ReplyHeader reply = ReplyOfRead(get.header, node_->store->Get(get.key, room, now_.wall_ms));
  if (reply.status != static_cast<uint8_t>(ReplyStatus::kOk)) {
    AnswerLong(connection, reply);
    return false;
  }
  reply.value_in_buffer = 1;
  if (reply.value_bytes == 0) {
    // It shrank while this waited; devices differ in what a WRITE of nothing means.
    AnswerLong(connection, reply);
    return false;
  }
  // The reply is behind the value in the same queue, so it arrives after it.
  if (!batch_.AddWrite(connection, staging_.Sge(staging, reply.value_bytes),
                       get.header.buffer_address, get.header.buffer_rkey, staging)) {
    return false;
  }
  AnswerLong(connection, reply);
  return true;
}

}  // namespace gannet
