#include <algorithm>
#include <utility>

#include "server/rpc/worker.h"

namespace gannet {

// A value takes one READ or one WRITE: kValueBytesMax is far below what every device carries in one
// message.

void Worker::BeginLargePut(ServerConnection* connection, const RequestView& request) {
  BeginLong(connection, request.header);
  if (connection->rdma->depth().issued == 0) {
    // The client asked for a connection without READs.
    return AnswerLong(connection, ReplyTo(request.header, ReplyStatus::kInvalidArgument));
  }
  connection->puts_waiting.push_back({.header = request.header, .key = std::string(request.key)});
  PostReads(connection);
}

void Worker::PostReads(ServerConnection* connection) {
  const size_t depth = connection->rdma->depth().issued;
  while (!connection->closing && !connection->puts_waiting.empty() &&
         connection->puts_reading.size() < depth) {
    // Reserve only now, so that waiting requests take nothing from the heap.
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
  // Each connection may have one buffer, so that none keeps the others waiting. This is called
  // again when its READ is done.
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

// A connection that is passed over holds staging buffers. Their completions bring its next turn.
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
  // Look up again: the value may have changed or been deleted meanwhile.
  ReplyHeader reply = ReplyOfRead(get.header, node_->store->Get(get.key, room, now_.wall_ms));
  if (reply.status != static_cast<uint8_t>(ReplyStatus::kOk)) {
    AnswerLong(connection, reply);
    return false;
  }
  reply.value_in_buffer = 1;
  if (reply.value_bytes == 0) {
    // The value became empty meanwhile. Devices disagree about a WRITE of 0 bytes, so none is sent.
    AnswerLong(connection, reply);
    return false;
  }
  // The reply follows the value in the same send queue, so it arrives after the value.
  if (!batch_.AddWrite(connection, staging_.Sge(staging, reply.value_bytes),
                       get.header.buffer_address, get.header.buffer_rkey, staging)) {
    return false;
  }
  AnswerLong(connection, reply);
  return true;
}

}  // namespace gannet
