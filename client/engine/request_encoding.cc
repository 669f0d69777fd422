// What an operation asks a server: its opcode, the fields of the request, and what the reply's
// status means to the operation. Which fields a request has follows from the kind of its opcode
// (common/protocol/opcode.h).

#include "client/engine/request_encoding.h"

#include "client/engine/caller_memory.h"
#include "common/protocol/storage.h"

namespace gannet {

Opcode RequestOpcode(const Op& op) {
  if (op.busy.releases_lock()) return Opcode::kUnlock;
  switch (op.request.type) {
    case OpType::kGet:
    case OpType::kGetInto:
    case OpType::kExists:
    case OpType::kGetIfChanged:
      return Opcode::kGet;
    case OpType::kPut:
      return Opcode::kPut;
    case OpType::kDelete:
      return Opcode::kDelete;
    case OpType::kLock:
      return Opcode::kLock;
    case OpType::kLockAndGet:
      return op.has_lock() ? Opcode::kGet : Opcode::kLock;
    case OpType::kUnlock:
    case OpType::kBreakLock:
      return Opcode::kUnlock;
    case OpType::kExtendLock:
      return Opcode::kExtendLock;
    case OpType::kListLocks:
      return Opcode::kListLocks;
    case OpType::kStorage:
      return Opcode::kStorage;
    case OpType::kListClients:
      return Opcode::kListClients;
    case OpType::kSlowLog:
      return Opcode::kSlowLog;
    case OpType::kMap:
      return Opcode::kMap;
    case OpType::kStats:
      return Opcode::kStats;
    case OpType::kPing:
      return Opcode::kPing;
    case OpType::kAppend:
      return Opcode::kAppend;
    case OpType::kPrepend:
      return Opcode::kPrepend;
    case OpType::kIncr:
      return Opcode::kIncrement;
    case OpType::kTouch:
      return Opcode::kTouch;
    case OpType::kGetAndTouch:
      return op.rpc.second_step ? Opcode::kGet : Opcode::kTouch;
    case OpType::kFlush:
      return op.rpc.second_step ? Opcode::kMap : Opcode::kFlush;
  }
  return Opcode::kPing;
}

uint32_t ValueBytesOf(const OpRequest& request) {
  return static_cast<uint32_t>(request.memory.empty() ? request.value.size()
                                                      : BytesOf(request.memory));
}

RequestHeader MakeRequestHeader(const Op& op) {
  const OpRequest& request = op.request;
  const Opcode opcode = RequestOpcode(op);
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  header.key_bytes = op.key_bytes;
  switch (KindOf(opcode)) {
    case RequestKind::kLock:
      header.lock = {.lock_word = op.lock.word.word(),
                     .lease_ms = opcode == Opcode::kUnlock ? 0 : request.ttl_ms};
      header.flags = request.type == OpType::kBreakLock ? kForce : 0;
      return header;
    case RequestKind::kList:
      header.list = {.position = request.position};
      return header;
    case RequestKind::kStorage:
      header.storage = {.ask = static_cast<uint64_t>(request.begin_snapshot ? StorageAsk::kSnapshot
                                                                            : StorageAsk::kTell)};
      return header;
    case RequestKind::kFlush:
      header.flush = {.position = request.position};
      return header;
    case RequestKind::kWrite:
      break;
    case RequestKind::kHeartbeat:
    case RequestKind::kGet:
    case RequestKind::kBare:
    case RequestKind::kUnknown:
      return header;
  }
  header.value_bytes =
      opcode == Opcode::kIncrement ? sizeof(request.counter) : ValueBytesOf(request);
  header.write = {.ttl_ms = request.ttl_ms,
                  .user_flags = request.flags,
                  .expected_version = request.expected_version,
                  .lock_word = request.under_lock ? request.lock_word : 0};
  header.flags = (request.only_if_absent ? kOnlyIfAbsent : 0) |
                 (request.only_if_present ? kOnlyIfPresent : 0) |
                 (request.only_if_version ? kOnlyIfVersion : 0) |
                 (request.under_lock ? kUnderLock : 0) | (op.rpc.put_off ? kSentAgain : 0);
  return header;
}

Outcome ToOutcome(ReplyStatus status) {
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
    case ReplyStatus::kDiskRefuses:
      return Outcome::kDiskRefuses;
    case ReplyStatus::kTooFewCopies:
      return Outcome::kTooFewCopies;
    case ReplyStatus::kOutcomeUnknown:
      return Outcome::kFewCopies;
    case ReplyStatus::kPermissionDenied:
      return Outcome::kReadOnly;
    case ReplyStatus::kInvalidArgument:
      return Outcome::kRefused;
    case ReplyStatus::kUnimplemented:
      return Outcome::kUnimplemented;
    case ReplyStatus::kNotANumber:
      return Outcome::kNotANumber;
    case ReplyStatus::kOutOfRange:
      return Outcome::kOutOfRange;
    case ReplyStatus::kTooLong:
      return Outcome::kGrownTooLong;
    case ReplyStatus::kTryAgain:
    case ReplyStatus::kElsewhere:
      return Outcome::kUnavailable;
    case ReplyStatus::kBufferTooSmall:
    case ReplyStatus::kInternal:
      return Outcome::kServerBug;
  }
  return Outcome::kServerBug;
}

}  // namespace gannet
