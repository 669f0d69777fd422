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
  connection->puts_waiting.push_back({.header = request.header, .key = std::string(request.key)});
  PostReads(connection);
}

void Worker::PostReads(ServerConnection* connection) {
  const size_t depth = connection->rdma->depth().issued;
  while (!connection->closing && !connection->puts_waiting.empty() &&
         connection->puts_reading.size() < depth) {
    // Reserved only now, so that requests that wait take nothing from the heap.
    const Sink found = FindSink(connection, &connection->puts_waiting.front());
    if (found == Sink::kWait) return;
    LargePut put = std::move(connection->puts_waiting.front());
    connection->puts_waiting.pop_front();
    if (found == Sink::kNone) {
      AnswerLong(connection, ReplyTo(put.header, ReplyStatus::kHeapFull));
      continue;
    }
    const uint32_t bytes = put.header.value_bytes;
    const ibv_sge sge = put.buffer
                            ? replacing_.Sge(*put.buffer, bytes)
                            : ibv_sge{reinterpret_cast<uint64_t>(put.reservation->value.data()),
                                      bytes, node_->region_lkey};
    const uint64_t address = put.header.buffer_address;
    const uint32_t rkey = put.header.buffer_rkey;
    connection->puts_reading.push_back(std::move(put));
    if (!batch_.AddRead(connection, sge, address, rkey)) {
      GiveSink(connection->puts_reading.back());
      connection->puts_reading.pop_back();
    }
  }
}

Worker::Sink Worker::FindSink(ServerConnection* connection, LargePut* put) {
  const uint32_t bytes = put->header.value_bytes;
  put->reservation = node_->store->Reserve(put->key, bytes, now_.wall_ms);
  if (put->reservation) return Sink::kFound;
  if (!node_->store->FitsOld(put->key, bytes, now_.wall_ms)) return Sink::kNone;
  // One a connection, so that none keeps the others waiting; when its READ is done, this is called
  // again.
  const auto has_buffer = [](const LargePut& other) { return other.buffer.has_value(); };
  if (std::ranges::any_of(connection->puts_reading, has_buffer)) return Sink::kWait;
  put->buffer = replacing_.Take();
  if (put->buffer) return Sink::kFound;
  if (std::ranges::find(replacing_waits_, connection->id) == replacing_waits_.end()) {
    replacing_waits_.push_back(connection->id);
  }
  return Sink::kWait;
}

void Worker::GiveSink(const LargePut& put) {
  if (put.reservation) node_->store->Abandon(*put.reservation);
  if (put.buffer) replacing_.Give(*put.buffer);
}

void Worker::ServeReplacing() {
  while (!replacing_waits_.empty() && replacing_.available() > 0) {
    ServerConnection* connection = Find(replacing_waits_.front());
    replacing_waits_.pop_front();
    if (connection != nullptr) PostReads(connection);
  }
}

void Worker::OnRead(ServerConnection* connection, bool ok) {
  const LargePut put = std::move(connection->puts_reading.front());
  connection->puts_reading.pop_front();
  if (!ok || connection->closing) return GiveSink(put);
  AnswerLong(connection, ReplyOfWrite(put.header, Commit(put)));
}

WriteOutcome Worker::Commit(const LargePut& put) {
  const ItemAttributes attributes = AttributesOf(put.header, now_.wall_ms);
  const WriteConditions conditions = ConditionsOf(put.header);
  if (!put.buffer) {
    return node_->store->CommitPut(*put.reservation, put.key, attributes, conditions, now_.wall_ms);
  }
  const std::span<std::byte> value = replacing_.Bytes(*put.buffer).first(put.header.value_bytes);
  const WriteOutcome outcome =
      node_->store->Put(put.key, {reinterpret_cast<const char*>(value.data()), value.size()},
                        attributes, conditions, now_.wall_ms);
  replacing_.Give(*put.buffer);
  return outcome;
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
