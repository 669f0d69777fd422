// What goes by RPC: writes, the fall-back of lookups, locks where the NIC cannot, Stats and Ping.

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/engine/engine.h"

namespace gannet {
namespace {

// Room for the value that a GET by RPC names at first; the server says when it is too small.
constexpr uint32_t kReplyRoom = 16 << 10;
// Of a request that is to be sent again: about a round trip, and as long as a server is busy with
// much else.
constexpr int64_t kPauseNsMin = 10 * kNsPerUs;
constexpr int64_t kPauseNsMax = 5 * kNsPerMs;

Opcode OpcodeOf(const Op& op) {
  if (op.busy.releasing) return Opcode::kUnlock;
  switch (op.request.type) {
    case OpType::kGet:
      return Opcode::kGet;
    case OpType::kPut:
      return Opcode::kPut;
    case OpType::kDelete:
      return Opcode::kDelete;
    case OpType::kLock:
      return Opcode::kLock;
    case OpType::kLockAndGet:
      return op.lock_acquired ? Opcode::kGet : Opcode::kLock;
    case OpType::kUnlock:
    case OpType::kBreakLock:
      return Opcode::kUnlock;
    case OpType::kExtendLock:
      return Opcode::kExtendLock;
    case OpType::kListLocks:
      return Opcode::kListLocks;
    case OpType::kStats:
      return Opcode::kStats;
    case OpType::kPing:
      return Opcode::kPing;
  }
  return Opcode::kPing;
}

Outcome OutcomeOf(ReplyStatus status) {
  switch (status) {
    case ReplyStatus::kOk:
    case ReplyStatus::kNotFound:
    case ReplyStatus::kLockHeld:
      return Outcome::kOk;
    case ReplyStatus::kExists:
      return Outcome::kExists;
    case ReplyStatus::kVersionMismatch:
      return Outcome::kVersionMismatch;
    case ReplyStatus::kLockLost:
      return Outcome::kLockLost;
    case ReplyStatus::kHeapFull:
      return Outcome::kHeapFull;
    case ReplyStatus::kIndexFull:
      return Outcome::kIndexFull;
    case ReplyStatus::kInvalidArgument:
      return Outcome::kRefused;
    case ReplyStatus::kUnimplemented:
      return Outcome::kUnimplemented;
    case ReplyStatus::kTryAgain:
      return Outcome::kUnavailable;
    case ReplyStatus::kBufferTooSmall:
    case ReplyStatus::kInternal:
      return Outcome::kServerBug;
  }
  return Outcome::kServerBug;
}

}  // namespace

void Engine::QueueRequest(uint32_t i) {
  ops_[i].phase = Op::Phase::kRequestQueued;
  PushRequest(i);
}

void Engine::PushRequest(uint32_t i) {
  Op& op = ops_[i];
  if (op.busy.queued_request) return;
  op.busy.queued_request = true;
  SessionOf(op).QueueRequest(i);
}

// Nobody waits for it any more: it leaves without a credit, which may never come.
void Engine::CancelRequest(uint32_t i) {
  Op& op = ops_[i];
  op.busy.postponed = false;
  if (!op.busy.queued_request) return;
  op.busy.queued_request = false;
  SessionOf(op).CancelRequest(i);
}

// The server has no room for it now. It is sent again after a pause, or those that are told so
// would keep the server from everything else. The longer an operation has waited the longer the
// pause, so pauses grow exponentially.
void Engine::Postpone(uint32_t i) {
  Op& op = ops_[i];
  const int64_t waited_ns = now_ns_ - (op.deadline_ns - op.request.timeout_ns);
  op.again_ns = now_ns_ + std::clamp(waited_ns / 2, kPauseNsMin, kPauseNsMax);
  op.busy.postponed = true;
  earliest_deadline_ns_ = std::min(earliest_deadline_ns_, op.again_ns);
}

void Engine::EndPause(uint32_t i) {
  Op& op = ops_[i];
  if (now_ns_ < op.again_ns) {
    earliest_deadline_ns_ = std::min(earliest_deadline_ns_, op.again_ns);
    return;
  }
  op.busy.postponed = false;
  PushRequest(i);
}

RequestHeader Engine::HeaderOf(const Op& op) const {
  const OpRequest& request = op.request;
  const Opcode opcode = OpcodeOf(op);
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  header.key_bytes = op.key_bytes;
  switch (opcode) {
    case Opcode::kLock:
    case Opcode::kExtendLock:
      header.ttl_ms = request.ttl_ms;
      [[fallthrough]];
    case Opcode::kUnlock:
      header.lock_word = op.word.word();
      header.flags = request.type == OpType::kBreakLock ? kForce : 0;
      return header;
    case Opcode::kListLocks:
      header.expected_version = request.expected_version;
      return header;
    case Opcode::kPut:
    case Opcode::kDelete:
      break;
    default:
      return header;
  }
  header.value_bytes = static_cast<uint32_t>(request.value.size());
  header.ttl_ms = request.ttl_ms;
  header.user_flags = request.flags;
  header.expected_version = request.expected_version;
  header.lock_word = request.under_lock ? request.lock_word : 0;
  header.flags = (request.only_if_absent ? kOnlyIfAbsent : 0) |
                 (request.only_if_version ? kOnlyIfVersion : 0) |
                 (request.under_lock ? kUnderLock : 0);
  return header;
}

uint32_t Engine::OnEncode(uint32_t i, RequestWindow::Entry* entry, std::span<std::byte> out) {
  Op& op = ops_[i];
  ClientSession& session = SessionOf(op);
  const bool under_lock = op.request.under_lock || op.request.type == OpType::kExtendLock;
  if (under_lock && !LocksOf(op).Holds(op.hash, op.word)) {
    op.busy.queued_request = false;
    Finish(i, Outcome::kLockLost);
    return kNotWanted;
  }
  RequestHeader header = HeaderOf(op);
  header.sequence = entry->sequence;
  std::string_view value = op.request.value;
  if (header.opcode == static_cast<uint8_t>(Opcode::kGet)) {
    entry->reply = session.memory().replies.Take(std::max(op.value_needed, kReplyRoom));
    if (entry->reply.data == nullptr) return EncodeLater(i, session.memory().replies);
    header.flags |= kValueInBuffer;
    header.value_bytes = std::min<uint32_t>(entry->reply.bytes, kValueBytesMax);
    header.buffer_address = entry->reply.address();
    header.buffer_rkey = entry->reply.rkey;
  } else if (!IsEager(op)) {
    entry->value = session.memory().values.Take(static_cast<uint32_t>(value.size()));
    if (entry->value.data == nullptr) return EncodeLater(i, session.memory().values);
    std::memcpy(entry->value.data, value.data(), value.size());
    header.flags |= kValueInBuffer;
    header.buffer_address = entry->value.address();
    header.buffer_rkey = entry->value.rkey;
    value = {};
  }
  op.busy.queued_request = false;
  entry->timeout_ns = op.request.timeout_ns;
  op.sequence = entry->sequence;
  if (!op.over()) op.phase = Op::Phase::kRequestSent;
  return static_cast<uint32_t>(EncodeRequest(header, op.key(), value, out));
}

// There is no buffer to lend: now, or ever.
uint32_t Engine::EncodeLater(uint32_t i, const RegisteredPool& pool) {
  if (pool.error().ok()) return kNotNow;
  ops_[i].busy.queued_request = false;
  Finish(i, Outcome::kNoBuffers);
  return kNotWanted;
}

void Engine::OnRequestPosted(uint32_t i, bool doorbell) {
  ++ops_[i].done.cost.sends;
  ops_[i].done.cost.posts += doorbell;
}

void Engine::OnRequestSignaled(uint32_t i) { ++ops_[i].done.cost.completions; }

void Engine::OnReply(RequestWindow::Entry* entry, const ReplyView& reply) {
  const uint32_t i = entry->op;
  Op& op = ops_[i];
  ++op.done.cost.completions;
  if (op.over()) return OnLateReply(i, reply);
  OnAnswer(i, entry, reply);
  if (!released_.empty()) StartReleased();
}

void Engine::OnAnswer(uint32_t i, RequestWindow::Entry* entry, const ReplyView& reply) {
  const Opcode opcode = OpcodeOf(ops_[i]);
  if (reply.header.opcode != static_cast<uint8_t>(opcode)) return Finish(i, Outcome::kServerBug);
  if (reply.header.status == static_cast<uint8_t>(ReplyStatus::kTryAgain)) {
    ops_[i].phase = Op::Phase::kRequestQueued;
    return Postpone(i);
  }
  switch (opcode) {
    case Opcode::kGet:
      return OnGetReply(i, entry, reply);
    case Opcode::kPut:
    case Opcode::kDelete:
      return OnWriteReply(i, reply);
    case Opcode::kLock:
    case Opcode::kUnlock:
    case Opcode::kExtendLock:
      return OnLockReply(i, reply);
    case Opcode::kStats:
    case Opcode::kListLocks:
      if (!KeepReplyBytes(i, reply)) return Finish(i, Outcome::kUnavailable);
      [[fallthrough]];
    case Opcode::kPing:
    case Opcode::kHeartbeat:
      return Finish(i, OutcomeOf(static_cast<ReplyStatus>(reply.header.status)));
  }
}

void Engine::OnGetReply(uint32_t i, RequestWindow::Entry* entry, const ReplyView& reply) {
  Op& op = ops_[i];
  const ReplyHeader& header = reply.header;
  op.done.cost.by_rpc = true;
  const auto status = static_cast<ReplyStatus>(header.status);
  if (status == ReplyStatus::kBufferTooSmall && header.value_bytes > op.value_needed) {
    op.value_needed = header.value_bytes;
    return QueueRequest(i);
  }
  if (status == ReplyStatus::kNotFound) CacheOf(op).Forget(op.hash);
  if (status != ReplyStatus::kOk) return Finish(i, OutcomeOf(status));
  if (header.value_bytes > entry->reply.bytes) return Finish(i, Outcome::kServerBug);
  if (!header.value_in_buffer) {
    std::memcpy(entry->reply.data, reply.value.data(), reply.value.size());
  }
  ReturnItem(op);
  op.item = std::exchange(entry->reply, {});  // Release returns it
  op.item_is_reply = true;
  op.done.found = true;
  op.value = {reinterpret_cast<const char*>(op.item.data), header.value_bytes};
  op.done.info = {header.version, header.user_flags, header.expiry_ms, header.value_bytes};
  if (header.expiry_ms != 0) op.done.info.ttl_left = TtlLeft(*op.server, header.expiry_ms);
  CacheOf(op).Remember(op.hash, Slot(header.slot));
  Finish(i, Outcome::kOk);
}

void Engine::OnWriteReply(uint32_t i, const ReplyView& reply) {
  Op& op = ops_[i];
  const ReplyHeader& header = reply.header;
  const auto status = static_cast<ReplyStatus>(header.status);
  op.done.info.version = header.version;
  op.done.found = status == ReplyStatus::kOk;
  if (status == ReplyStatus::kOk && op.request.type == OpType::kPut && header.slot != 0) {
    CacheOf(op).RememberWritten(op.hash, Slot(header.slot));
  } else if (status == ReplyStatus::kOk || status == ReplyStatus::kNotFound) {
    CacheOf(op).Forget(op.hash);
  }
  Finish(i, OutcomeOf(status));
}

void Engine::OnLockReply(uint32_t i, const ReplyView& reply) {
  Op& op = ops_[i];
  const auto status = static_cast<ReplyStatus>(reply.header.status);
  const OpType type = op.request.type;
  if (type == OpType::kBreakLock) return OnBreakReply(op, status);
  const bool taking = type == OpType::kLock || type == OpType::kLockAndGet;
  const bool released = type == OpType::kUnlock || status == ReplyStatus::kLockLost;
  if (released) LocksOf(op).OnReleased(op.hash, op.word);
  // Of a connection that broke before the answer came: whatever it says, the lock is lost.
  if (!LocksOf(op).IsOfThisConnection(op.word)) {
    return Finish(i, taking ? Outcome::kUnavailable : Outcome::kLockLost);
  }
  if (!taking) return Finish(i, OutcomeOf(status));
  if (status == ReplyStatus::kLockHeld) {
    return OnLockAnswer(i, false, LockWord(reply.header.lock_word));
  }
  if (status != ReplyStatus::kOk) return Finish(i, OutcomeOf(status));
  OnLockAnswer(i, true, op.word);
}

// Not found: nobody held it.
void Engine::OnBreakReply(Op& op, ReplyStatus status) {
  op.done.found = status == ReplyStatus::kOk;
  Finish(op.number, OutcomeOf(status));
}

// The operation is over. What matters still is a lock that nobody will unlock.
void Engine::OnLateReply(uint32_t i, const ReplyView& reply) {
  Op& op = ops_[i];
  if (op.busy.awaits_reply) {
    op.busy.awaits_reply = false;
    const bool acquired = reply.header.status == static_cast<uint8_t>(ReplyStatus::kOk);
    if (acquired && LocksOf(op).IsOfThisConnection(op.word)) GiveBackLock(i);
  } else if (reply.header.status == static_cast<uint8_t>(ReplyStatus::kTryAgain)) {
    Postpone(i);  // the lock is still held
  } else {
    op.busy.releasing = false;
  }
  FreeIfQuiet(i);
}

// The reply's bytes outlive the receive buffer in the operation's own, or in a long one. False:
// none is free now.
bool Engine::KeepReplyBytes(uint32_t i, const ReplyView& reply) {
  Op& op = ops_[i];
  const auto n = static_cast<uint32_t>(reply.value.size());
  std::byte* kept = n <= OpBuffers::kSmallItemBytes ? op.buffers->item : LongBuffer(op, n);
  if (kept == nullptr) return false;
  if (n > 0) std::memcpy(kept, reply.value.data(), n);
  op.value = {reinterpret_cast<const char*>(kept), n};
  op.done.info.version = reply.header.version;  // list locks: where to go on
  return true;
}

}  // namespace gannet
