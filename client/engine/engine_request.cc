// What goes by RPC: writes, the fall-back of lookups, locks where the NIC cannot, Stats and Ping.

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/engine/engine.h"

namespace gannet {
namespace {

// Room for the value that a GET by RPC names at first; the server says when it is too small.
constexpr uint32_t kReplyRoom = 16 << 10;

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
      return Opcode::kUnlock;
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
  Op& op = ops_[i];
  op.phase = Op::Phase::kRequestQueued;
  if (op.busy.queued_request) return;
  op.busy.queued_request = true;
  SessionOf(op).QueueRequest(i);
}

RequestHeader Engine::HeaderOf(const Op& op) const {
  const OpRequest& request = op.request;
  const Opcode opcode = OpcodeOf(op);
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  header.key_bytes = op.key_bytes;
  if (opcode == Opcode::kLock || opcode == Opcode::kUnlock) header.lock_word = op.word.word();
  if (opcode != Opcode::kPut && opcode != Opcode::kDelete) return header;
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
  const bool unlocks = op.busy.releasing && !session.lock_by_nic();
  const bool wanted = op.over() ? unlocks : op.phase == Op::Phase::kRequestQueued;
  if (!wanted || (op.request.under_lock && !LocksOf(op).Holds(op.hash, op.word))) {
    op.busy.queued_request = false;
    if (wanted) Finish(i, Outcome::kLockLost);
    FreeIfQuiet(i);
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
  } else if (sizeof(header) + op.key_bytes + value.size() > session.eager_bytes_max()) {
    entry->value = session.memory().values.Take(static_cast<uint32_t>(value.size()));
    if (entry->value.data == nullptr) return EncodeLater(i, session.memory().values);
    std::memcpy(entry->value.data, value.data(), value.size());
    header.flags |= kValueInBuffer;
    header.buffer_address = entry->value.address();
    header.buffer_rkey = entry->value.rkey;
    value = {};
  }
  op.busy.queued_request = false;
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
  const Opcode opcode = OpcodeOf(op);
  if (reply.header.opcode != static_cast<uint8_t>(opcode)) return Finish(i, Outcome::kServerBug);
  if (reply.header.status == static_cast<uint8_t>(ReplyStatus::kTryAgain)) return QueueRequest(i);
  switch (opcode) {
    case Opcode::kGet:
      return OnGetReply(i, entry, reply);
    case Opcode::kPut:
    case Opcode::kDelete:
      return OnWriteReply(i, reply);
    case Opcode::kLock:
    case Opcode::kUnlock:
      return OnLockReply(i, reply);
    case Opcode::kStats:
      KeepReplyBytes(i, reply);
      [[fallthrough]];
    case Opcode::kPing:
    case Opcode::kHeartbeat:
    case Opcode::kExtendLock:
    case Opcode::kListLocks:
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
  if (op.request.type == OpType::kLockAndGet && !op.lock_acquired) {
    return Finish(i, Outcome::kUnavailable);  // the lock was lost meanwhile
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
  const bool unlock = op.request.type == OpType::kUnlock;
  if (unlock) LocksOf(op).OnReleased(op.hash, op.word);
  // Of a connection that broke before the answer came: whatever it says, the lock is lost.
  if (!LocksOf(op).IsOfThisConnection(op.word)) {
    return Finish(i, unlock ? Outcome::kLockLost : Outcome::kUnavailable);
  }
  if (unlock) return Finish(i, OutcomeOf(status));
  if (status == ReplyStatus::kLockHeld) {
    return OnLockAnswer(i, false, LockWord(reply.header.lock_word));
  }
  if (status != ReplyStatus::kOk) return Finish(i, OutcomeOf(status));
  OnLockAnswer(i, true, op.word);
}

// The operation is over. What matters still is a lock that nobody will unlock.
void Engine::OnLateReply(uint32_t i, const ReplyView& reply) {
  Op& op = ops_[i];
  if (op.busy.awaits_reply) {
    op.busy.awaits_reply = false;
    const bool acquired = reply.header.status == static_cast<uint8_t>(ReplyStatus::kOk);
    if (acquired && LocksOf(op).IsOfThisConnection(op.word)) GiveBackLock(i);
  } else {
    op.busy.releasing = false;
  }
  FreeIfQuiet(i);
}

// Stats: the reply's bytes outlive the receive buffer in the operation's own.
void Engine::KeepReplyBytes(uint32_t i, const ReplyView& reply) {
  Op& op = ops_[i];
  const size_t n = std::min<size_t>(reply.value.size(), OpBuffers::kSmallItemBytes);
  std::byte* kept = ops_[i].buffers->item;
  std::memcpy(kept, reply.value.data(), n);
  op.value = {reinterpret_cast<const char*>(kept), n};
}

}  // namespace gannet
