// Values that do not fit a message. A PUT waits in its connection until there is memory for the
// value, READs it in pieces, and is decided when the last one has arrived. READs of a connection
// complete in their order, so the oldest PUT is always the one that a completion is of. A GET waits
// for a staging buffer, looks the key up again, and WRITEs the value in front of its reply.

#include "server/rpc/long_values.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <utility>
#include <vector>

#include "common/protocol/partition_map.h"
#include "server/memory/store/store_find.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/elsewhere.h"
#include "server/rpc/put_off.h"
#include "server/rpc/tier_gets.h"

namespace gannet {
namespace {

// A long value is READ in pieces, so that the worker serves other requests meanwhile. Several
// pieces are in flight, so that the wire does not wait for the worker.
constexpr uint32_t kPieceBytes = 256 << 10;
constexpr uint32_t kReadBytesInFlightMax = 4 * kPieceBytes;  // of a connection

std::vector<ValueSegment> SegmentsOf(const RequestView& request) {
  const RequestHeader& header = request.header;
  if (header.flags & kValueInBuffer) {
    return {{header.write.buffer_address, header.write.buffer_rkey, header.value_bytes}};
  }
  std::vector<ValueSegment> segments(request.value.size() / sizeof(ValueSegment));
  std::memcpy(segments.data(), request.value.data(), segments.size() * sizeof(ValueSegment));
  return segments;
}

}  // namespace

void LongValues::BeginPut(ServerConnection* connection, const RequestView& request) {
  Replies::BeginLong(connection, request.header);
  if (connection->rdma->depth().issued == 0) {
    // The client asked for a connection without READs.
    return replies_.AnswerLong(connection, ReplyTo(request.header, ReplyStatus::kInvalidArgument));
  }
  if (context_.server.store.records() &&
      context_.server.changes.takes() == ChangeConsumer::Takes::kLater) {
    // It would be READ for nothing.
    return replies_.AnswerLong(connection, ReplyTo(request.header, ReplyStatus::kTryAgain));
  }
  if (const uint64_t wait_ms = LeaseLeftMs(request)) {
    ReplyHeader reply = ReplyTo(request.header, ReplyStatus::kTryAgain);
    reply.words[kPutOffMsWord] = wait_ms;
    return replies_.AnswerLong(connection, reply);
  }
  connection->puts_waiting.push_back({.header = request.header,
                                      .key = std::string(request.key),
                                      .segments = SegmentsOf(request),
                                      .began = context_.now.boot});
  PostReads(connection);
}

// A write with conditions may be refused by them, and would have ended the lease for nothing. It is
// put off when its value is there.
uint64_t LongValues::LeaseLeftMs(const RequestView& request) const {
  Store& store = context_.server.store;
  if (store.leases() == nullptr || ConditionsOf(request.header, nullptr).any()) return 0;
  const ServerTime now = store.Now(context_.now.server_time);
  const Store::Locked locked(store, store.HashOf(request.key), request.key, now);
  return store.EndLease(locked.lock, locked.hash, now);
}

void LongValues::PostReads(ServerConnection* connection) {
  const uint32_t depth = connection->rdma->depth().issued;
  while (!connection->closing && connection->reads_in_flight < depth &&
         connection->read_bytes_in_flight < kReadBytesInFlightMax) {
    LargePut* put = NextToRead(connection);
    if (put == nullptr) return;
    PostPiece(connection, put);
  }
}

LargePut* LongValues::NextToRead(ServerConnection* connection) {
  std::list<LargePut>& reading = connection->puts_reading;
  if (!reading.empty() && reading.back().posted < reading.back().value_bytes()) {
    return &reading.back();
  }
  while (!connection->puts_waiting.empty()) {
    // Reserve only now, so that waiting requests take nothing from the heap.
    const Sink found = FindSink(connection, &connection->puts_waiting.front());
    if (found == Sink::kWait) return nullptr;
    if (found == Sink::kFound) {
      reading.splice(reading.end(), connection->puts_waiting, connection->puts_waiting.begin());
      return &reading.back();
    }
    const LargePut& put = connection->puts_waiting.front();
    const ReplyStatus status = context_.server.store.NoRoom(put.key, put.header.value_bytes);
    const ReplyHeader reply =
        PutOffIfBehind(context_.server.store, context_.server.changes, ReplyTo(put.header, status));
    connection->puts_waiting.pop_front();
    replies_.AnswerLong(connection, reply);
  }
  return nullptr;
}

void LongValues::PostPiece(ServerConnection* connection, LargePut* put) {
  const ValueSegment& segment = put->segments[put->segment];
  const uint32_t bytes = std::min(segment.bytes - put->segment_posted, kPieceBytes);
  ibv_sge sge{0, bytes, context_.server.rails[connection->rail].region_lkey};
  if (put->buffer) {
    sge = replacing_.Sge(*put->buffer, put->value_bytes(), connection->rail);
    sge.addr += put->posted;
    sge.length = bytes;
  } else {
    sge.addr = reinterpret_cast<uint64_t>(put->reservation->value.data()) + put->posted;
  }
  if (!replies_.batch().AddRead(connection, sge, segment.address + put->segment_posted,
                                segment.rkey)) {
    // The connection is closing. While READs of this PUT are in flight, its memory stays (OnRead).
    if (put->arrived < put->posted) return;
    GiveSink(*put);
    return connection->puts_reading.pop_back();
  }
  ++connection->reads_in_flight;
  connection->read_bytes_in_flight += bytes;
  put->posted += bytes;
  put->segment_posted += bytes;
  if (put->segment_posted < segment.bytes) return;
  ++put->segment;
  put->segment_posted = 0;
}

LongValues::Sink LongValues::FindSink(ServerConnection* connection, LargePut* put) {
  const uint32_t bytes = put->header.value_bytes;
  if (context_.server.writes.crowded()) {
    WaitForSink(*connection);
    return Sink::kWait;
  }
  put->reservation = context_.server.store.Reserve(put->key, bytes, context_.now.server_time);
  if (put->reservation) return Sink::kFound;
  if (!context_.server.writes.MayOverwrite(put->key, bytes, context_.now.server_time))
    return Sink::kNone;
  // Each connection may have one buffer, so that none keeps the others waiting. This is called
  // again when its READ is done.
  const auto has_buffer = [](const LargePut& other) { return other.buffer.has_value(); };
  if (std::ranges::any_of(connection->puts_reading, has_buffer)) return Sink::kWait;
  if (!replacing_.Available(bytes)) {
    WaitForSink(*connection);
    return Sink::kWait;
  }
  put->buffer = replacing_.Take(bytes, connection->rail);
  return put->buffer ? Sink::kFound : Sink::kNone;
}

void LongValues::WaitForSink(const ServerConnection& connection) {
  if (std::ranges::find(replacing_waits_, connection.id) == replacing_waits_.end()) {
    replacing_waits_.push_back(connection.id);
  }
}

void LongValues::GiveSink(const LargePut& put) {
  if (put.reservation) context_.server.store.Abandon(*put.reservation);
  if (put.buffer) replacing_.Give(*put.buffer);
}

// Who finds no buffer of the length that it needs waits on, behind the others.
void LongValues::ServePuts() {
  for (size_t n = replacing_waits_.size(); n > 0 && !context_.server.writes.crowded(); --n) {
    ServerConnection* connection = context_.connections.Find(replacing_waits_.front());
    replacing_waits_.pop_front();
    if (connection == nullptr || connection->puts_waiting.empty()) continue;
    if (replacing_.Available(connection->puts_waiting.front().value_bytes())) {
      PostReads(connection);
    } else {
      replacing_waits_.push_back(connection->id);
    }
  }
}

// READs complete in the order in which they were posted. So this one is of the oldest PUT. After
// it, something of each PUT in puts_reading is still in flight, or PostReads posts more, or the
// connection is closing.
void LongValues::OnRead(ServerConnection* connection, uint32_t bytes, bool ok) {
  --connection->reads_in_flight;
  connection->read_bytes_in_flight -= bytes;
  LargePut& oldest = connection->puts_reading.front();
  oldest.arrived += bytes;
  const bool given_up = !ok || connection->closing;
  if (oldest.arrived < (given_up ? oldest.posted : oldest.value_bytes())) return;
  const LargePut put = std::move(oldest);
  connection->puts_reading.pop_front();
  if (given_up || RefuseElsewhere(connection, put.header, put.key) ||
      RefuseMovedLock(connection, put)) {
    return GiveSink(put);
  }
  const Writes::Decided decided = Commit(*connection, put);
  connection->RemoveInProgress(put.header.sequence);
  ReplyHeader reply = ReplyOfWrite(put.header, decided.outcome);
  reply = PutOffIfBehind(context_.server.store, context_.server.changes, reply);
  held_replies_.SendOrHold(connection, reply, decided.ticket);
  context_.slow_requests.NoteIfSlow(*connection, put.header, put.key,
                                    context_.now.boot - put.began);
}

bool LongValues::RefuseElsewhere(ServerConnection* connection, const RequestHeader& header,
                                 std::string_view key) {
  if (!IsElsewhere(context_.server.standing, key)) return false;
  connection->RemoveInProgress(header.sequence);
  RefuseAsElsewhere(*context_.server.standing, header, /*in_order=*/0, connection, &replies_);
  return true;
}

// The key's partition may have been away while the value was READ.
bool LongValues::RefuseMovedLock(ServerConnection* connection, const LargePut& put) {
  if ((put.header.flags & kUnderLock) == 0 || context_.server.standing == nullptr) return false;
  const size_t index = lock_words_.IndexOf(lock_words_.HashOf(put.key));
  if (!lock_words_.HasMoved(PartitionOf(put.key), index, put.header.write.lock_word)) return false;
  ReplyHeader reply = ReplyTo(put.header, ReplyStatus::kLockLost);
  reply.write.lock_word = lock_words_.WordAt(index);
  replies_.AnswerLong(connection, reply);
  return true;
}

Writes::Decided LongValues::Commit(const ServerConnection& connection, const LargePut& put) {
  const ItemAttributes attributes =
      AttributesOf(put.header, context_.server.store, context_.now.server_time);
  const ChangeOrigin origin = OriginOf(*connection.session, put.header);
  const WriteConditions conditions = ConditionsOf(put.header, &origin);
  if (!put.buffer) {
    return context_.server.writes.CommitPut(*put.reservation, put.key, attributes, conditions,
                                            context_.now.server_time);
  }
  const std::span<std::byte> value = replacing_.Bytes(*put.buffer).first(put.header.value_bytes);
  const Writes::Decided decided = context_.server.writes.Put(
      put.key, {reinterpret_cast<const char*>(value.data()), value.size()}, attributes, conditions,
      context_.now.server_time);
  replacing_.Give(*put.buffer);
  return decided;
}

void LongValues::DropWaiting(ServerConnection* connection) {
  connection->puts_waiting.clear();
  gets_waiting_ -= connection->gets_waiting.size();
  connection->gets_waiting.clear();
}

void LongValues::BeginGet(ServerConnection* connection, const RequestView& request) {
  Replies::BeginLong(connection, request.header);
  if (gets_waiting_ >= kGetsMax) {
    return replies_.AnswerLong(connection, ReplyTo(request.header, ReplyStatus::kTryAgain));
  }
  if (connection->gets_waiting.empty()) get_turns_.push_back(connection->id);
  connection->gets_waiting.push_back({request.header, std::string(request.key), context_.now.boot});
  ++gets_waiting_;
}

// A connection that is passed over holds staging buffers. Their completions bring its next turn.
void LongValues::ServeGets() {
  for (size_t turns = get_turns_.size(); turns > 0 && staging_.available() > 0; --turns) {
    ServerConnection* connection = context_.connections.FindOpen(get_turns_.front());
    get_turns_.pop_front();
    if (connection == nullptr) continue;
    if (staging_.MayTake(connection->staging_buffers)) ServeNextGet(connection);
    if (!connection->gets_waiting.empty()) get_turns_.push_back(connection->id);
  }
}

void LongValues::ServeNextGet(ServerConnection* connection) {
  const LargeGet get = std::move(connection->gets_waiting.front());
  connection->gets_waiting.pop_front();
  --gets_waiting_;
  if (RefuseElsewhere(connection, get.header, get.key)) return;
  const uint32_t staging = *staging_.Take();
  if (!ServeGet(connection, get, staging)) staging_.Give(staging);
  context_.slow_requests.NoteIfSlow(*connection, get.header, get.key,
                                    context_.now.boot - get.began);
}

bool LongValues::ServeGet(ServerConnection* connection, const LargeGet& get, uint32_t staging) {
  const std::span<std::byte> room = staging_.Bytes(staging).first(
      std::min<size_t>(get.header.get.buffer_bytes, SizeClassBytes(kSealedClassMax)));
  // Look up again: the value may have changed, or been deleted or evicted to the disk meanwhile.
  const ReadOutcome found = context_.server.store.Get(get.key, room, context_.now.server_time);
  if (found.on_disk) {
    connection->RemoveInProgress(get.header.sequence);
    tier_gets_.Begin(connection, get.header, get.key);
    return false;
  }
  ReplyHeader reply = ReplyOfRead(get.header, found);
  if (reply.status != static_cast<uint8_t>(ReplyStatus::kOk)) {
    replies_.AnswerLong(connection, reply);
    return false;
  }
  reply.get.value_in_buffer = 1;
  if (reply.value_bytes == 0) {
    // The value became empty meanwhile. Devices disagree about a WRITE of 0 bytes, so none is sent.
    replies_.AnswerLong(connection, reply);
    return false;
  }
  // The reply follows the value in the same send queue, so it arrives after the value.
  if (!replies_.batch().AddWrite(connection,
                                 staging_.Sge(staging, reply.value_bytes, connection->rail),
                                 get.header.get.buffer_address, get.header.get.buffer_rkey,
                                 {Resource::Kind::kStaging, staging})) {
    return false;
  }
  ++connection->staging_buffers;
  replies_.AnswerLong(connection, reply);
  return true;
}

}  // namespace gannet
