// From an application's arguments to an OpRequest, and from an operation that has ended to a
// Status, for both clients. What an application must not ask is refused here, before anything is
// sent, and the words of errors are written here.

#include "client/api/make_requests.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/engine/caller_memory.h"
#include "client/engine/request_encoding.h"
#include "client/session/memory_domains.h"
#include "common/base/check.h"
#include "common/protocol/stats_reply.h"

namespace gannet {
namespace {

absl::Status AddLease(std::chrono::milliseconds lease, OpRequest* request) {
  if (lease.count() < 1) return absl::InvalidArgumentError("a lease is at least 1 ms");
  request->ttl_ms = static_cast<uint64_t>(lease.count());
  if (request->ttl_ms > kTtlMsMax) return absl::InvalidArgumentError("lease too long");
  return absl::OkStatus();
}

// Returns what to say of a request that had no effect. A request that only asks has none anyway.
const char* TryAgainText(OpType type) {
  const bool changes = IsWrite(type) || TakesLock(type) || type == OpType::kUnlock;
  return changes ? "not applied, try again" : "no answer, try again";
}

// REQUIRES: the outcome is not kOk.
std::string Reason(const ClientSession& session, const Op& op) {
  GANNET_CHECK(op.outcome != Outcome::kOk, "nothing is wrong with the operation");
  switch (op.outcome) {
    case Outcome::kOk:
      break;
    case Outcome::kExists:
      return absl::StrCat("the key is there, version ", op.done.info.version);
    case Outcome::kNotFound:
      return "the key is not there";
    case Outcome::kNotANumber:
      return "the value is not a decimal number of 64 bits";
    case Outcome::kOutOfRange:
      return "the new number would not fit 64 bits";
    case Outcome::kGrownTooLong:
      return absl::StrCat("the new value would have more than ", kAppendedBytesMax, " bytes");
    case Outcome::kVersionMismatch:
      return absl::StrCat("the version is ", op.done.info.version, ", not ",
                          op.request.expected_version, " (0: absent)");
    case Outcome::kLockLost:
      return "the lock was lost";
    case Outcome::kMoved:
      return "partitions move between groups, and what was in them may be left; flush all again";
    case Outcome::kKeysShareWord:
      return "this client holds a lock whose word this key's lock shares";
    case Outcome::kTooManyLocks:
      return absl::StrCat("this client holds ", LockTable::kHeldMax, " locks");
    case Outcome::kHeapFull:
      return "the server's memory is full; start it with more --memory, or with --on_full=evict, "
             "which lets items go that are used little";
    case Outcome::kIndexFull:
      return "the server's index is full; start it with more --index_slots";
    case Outcome::kDiskRefuses:
      return "the server's disk is full or broken, and the server changes nothing; its "
             "log says more";
    case Outcome::kTooFewCopies:
      return "not applied: fewer members of the group are in sync than its min_copies, so it takes "
             "no writes";
    case Outcome::kTooLong:
      return absl::StrCat("the value has ", ValueBytesOf(op.request),
                          " bytes, and the server takes at most ", session.grant().value_bytes_max);
    case Outcome::kNoCpuAddress:
      return "a value this short is copied by the CPU, which cannot address the memory; use Get";
    case Outcome::kNoBuffers:
      return "no memory can be registered here for so long a value";
    case Outcome::kReadOnly:
      return "this client's key may only read: no writes, no locks";
    case Outcome::kRefused:
      return "the server takes the request for invalid; its log says why";
    case Outcome::kUnimplemented:
      return "the server does not know this request";
    case Outcome::kServerBug:
      return "the server could not carry out the request";
    case Outcome::kUnavailable:
    case Outcome::kUnrouted:
      return TryAgainText(op.request.type);
    case Outcome::kUnknown:
      return "the connection broke; the write may have been applied";
    case Outcome::kFewCopies:
      return "applied, but fewer members of the group have it than its min_copies: it is lost if "
             "they are";
    case Outcome::kDeadlineExceeded:
      return IsWrite(op.request.type)
                 ? "no answer within the deadline; the write may have been applied"
                 : "no answer within the deadline";
  }
  return "?";
}

}  // namespace

absl::Status AddConditions(const std::optional<uint64_t>& version, const Lock* lock,
                           OpRequest* request) {
  request->only_if_version = version.has_value();
  request->expected_version = version.value_or(0);
  if (lock == nullptr) return absl::OkStatus();
  if (!version.has_value()) {
    return absl::InvalidArgumentError(
        "a write under a lock needs only_if_version, the version read under it (0: absent)");
  }
  if (lock->key != request->key) {
    return absl::InvalidArgumentError("the lock is another key's");
  }
  request->under_lock = true;
  request->lock_word = lock->word;
  return absl::OkStatus();
}

absl::Status AddTtl(std::chrono::milliseconds ttl, OpRequest* request) {
  if (ttl.count() < 0) return absl::InvalidArgumentError("negative ttl");
  request->ttl_ms = static_cast<uint64_t>(ttl.count());
  if (request->ttl_ms > kTtlMsMax) return absl::InvalidArgumentError("ttl too long");
  return absl::OkStatus();
}

absl::Status CheckSpans(const Engine& engine, std::span<const RegisteredSpan> spans) {
  if (spans.empty() || spans.size() > kValueSegmentsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(spans.size(), " spans of memory, 1 to ", kValueSegmentsMax, " are possible"));
  }
  for (const RegisteredSpan& span : spans) {
    const MemoryRange* range = span.memory == nullptr ? nullptr : span.memory->range();
    if (range == nullptr || !range->belongs_to(engine.domains())) {
      return absl::InvalidArgumentError("the memory is not registered with this client");
    }
    if (span.bytes == 0 || span.offset > range->bytes() ||
        span.bytes > range->bytes() - span.offset) {
      return absl::InvalidArgumentError("a span is empty, or reaches beyond its memory");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckValueBytes(uint64_t bytes) {
  if (bytes <= kValueBytesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("value of ", bytes, " bytes, at most ", kValueBytesMax, " are possible"));
}

absl::Status KeyError(std::string_view key) {
  if (key.empty()) return absl::InvalidArgumentError("empty key");
  return absl::InvalidArgumentError(
      absl::StrCat("key of ", key.size(), " bytes, at most ", kKeyBytesMax, " are possible"));
}

absl::StatusOr<OpRequest> KeyRequest(OpType type, std::string_view key) {
  if (!KeyFits(key)) return KeyError(key);
  OpRequest request;
  request.type = type;
  request.key = key;
  return request;
}

absl::StatusOr<OpRequest> IfChangedRequest(std::string_view key, uint64_t version) {
  absl::StatusOr<OpRequest> request = KeyRequest(OpType::kGetIfChanged, key);
  if (request.ok()) request->expected_version = version;
  return request;
}

absl::StatusOr<OpRequest> PutRequest(std::string_view key, std::string_view value,
                                     const PutOptions& options) {
  absl::StatusOr<OpRequest> request = KeyRequest(OpType::kPut, key);
  if (!request.ok()) return request;
  if (absl::Status status = CheckValueBytes(value.size()); !status.ok()) return status;
  if (options.only_if_absent && (options.only_if_version.has_value() || options.lock != nullptr)) {
    return absl::InvalidArgumentError("only_if_absent together with only_if_version or a lock");
  }
  if (options.only_if_absent && options.only_if_present) {
    return absl::InvalidArgumentError("only_if_absent together with only_if_present");
  }
  request->value = value;
  request->flags = options.flags;
  request->only_if_absent = options.only_if_absent;
  request->only_if_present = options.only_if_present;
  absl::Status status = AddTtl(options.ttl, &*request);
  if (status.ok()) status = AddConditions(options.only_if_version, options.lock, &*request);
  if (!status.ok()) return status;
  return request;
}

absl::StatusOr<OpRequest> GetIntoRequest(const Engine& engine, std::string_view key,
                                         std::span<const RegisteredSpan> spans) {
  absl::StatusOr<OpRequest> request = KeyRequest(OpType::kGetInto, key);
  if (!request.ok()) return request;
  if (absl::Status status = CheckSpans(engine, spans); !status.ok()) return status;
  request->memory = spans;
  return request;
}

absl::StatusOr<OpRequest> PutFromRequest(const Engine& engine, std::string_view key,
                                         std::span<const RegisteredSpan> spans,
                                         const PutOptions& options) {
  absl::StatusOr<OpRequest> request = PutRequest(key, {}, options);
  if (!request.ok()) return request;
  if (absl::Status status = CheckSpans(engine, spans); !status.ok()) return status;
  if (absl::Status status = CheckValueBytes(BytesOf(spans)); !status.ok()) return status;
  // Checked here, because the server's READ would break the connection, again and again until the
  // deadline.
  for (const RegisteredSpan& span : spans) {
    if (!span.memory->range()->remote_read()) {
      return absl::InvalidArgumentError(
          "no server may READ this memory: register it with RegisterOptions::remote_read");
    }
  }
  request->memory = spans;
  return request;
}

absl::StatusOr<OpRequest> DeleteRequest(std::string_view key, const DeleteOptions& options) {
  absl::StatusOr<OpRequest> request = KeyRequest(OpType::kDelete, key);
  if (!request.ok()) return request;
  absl::Status status = AddConditions(options.only_if_version, options.lock, &*request);
  if (!status.ok()) return status;
  return request;
}

absl::StatusOr<OpRequest> LockRequest(OpType type, std::string_view key,
                                      const LockOptions& options) {
  absl::StatusOr<OpRequest> request = KeyRequest(type, key);
  if (!request.ok() || !options.lease.has_value()) return request;
  absl::Status status = AddLease(*options.lease, &*request);
  if (!status.ok()) return status;
  return request;
}

absl::StatusOr<OpRequest> ExtendRequest(const Lock& lock, std::chrono::milliseconds lease) {
  absl::StatusOr<OpRequest> request = UnlockRequest(lock);
  if (!request.ok()) return request;
  request->type = OpType::kExtendLock;
  absl::Status status = AddLease(lease, &*request);
  if (!status.ok()) return status;
  return request;
}

absl::StatusOr<OpRequest> UnlockRequest(const Lock& lock) {
  absl::StatusOr<OpRequest> request = KeyRequest(OpType::kUnlock, lock.key);
  if (!request.ok()) return request;
  if (lock.word == 0) return absl::InvalidArgumentError("not a lock that was acquired");
  request->lock_word = lock.word;
  return request;
}

absl::StatusOr<OpRequest> ServerRequest(const Engine& engine, OpType type, uint32_t server) {
  if (server >= engine.servers().count()) return absl::InvalidArgumentError("no such server");
  OpRequest request;
  request.type = type;
  request.server = server;
  return request;
}

absl::Status MakeStatus(const Engine& engine, const Op& op) {
  if (op.outcome == Outcome::kOk) return absl::OkStatus();
  if (op.outcome == Outcome::kUnrouted && !engine.servers().routing_status().ok()) {
    return engine.servers().routing_status();
  }
  const ClientSession& session = engine.servers().session(op.request.server);
  std::string message = absl::StrCat(session.endpoint(), ": ", Reason(session, op));
  if (!session.attempts().status().ok()) {
    absl::StrAppend(&message, " (", std::string(session.attempts().status().message()), ")");
  }
  return absl::Status(ToStatusCode(op.outcome), message);
}

absl::StatusOr<RegisteredMemory> MakeRegistered(
    absl::StatusOr<std::unique_ptr<MemoryRange>> range) {
  if (!range.ok()) return range.status();
  return RegisteredMemory(std::shared_ptr<MemoryRange>(*std::move(range)));
}

std::byte* RegisteredMemory::data() const { return range_ == nullptr ? nullptr : range_->data(); }

uint64_t RegisteredMemory::size() const { return range_ == nullptr ? 0 : range_->bytes(); }

ServerStats ParseStats(std::string endpoint, const Op& op) {
  StatsReply reply{};  // counters that an older server does not send stay 0
  std::memcpy(&reply, op.value.data(), std::min(op.value.size(), sizeof(reply)));
  ServerStats stats;
  stats.endpoint = std::move(endpoint);
#define GANNET_COPY(name) stats.name = reply.name;
  GANNET_STATISTICS(GANNET_COPY)
#undef GANNET_COPY
  return stats;
}

uint64_t AppendLocks(const Op& op, std::vector<HeldLock>* locks) {
  for (size_t at = 0; at + sizeof(LockEntry) <= op.value.size(); at += sizeof(LockEntry)) {
    LockEntry entry;
    std::memcpy(&entry, op.value.data() + at, sizeof(entry));
    locks->push_back({.word = entry.lock_word,
                      .index = entry.index,
                      .session_id = entry.session_id,
                      .lease = std::chrono::milliseconds(entry.lease_ms),
                      .holder = TextOf(entry.peer)});
  }
  return op.rpc.next_position;
}

}  // namespace gannet
