#ifndef GANNET_CLIENT_ENGINE_OUTCOME_H_
#define GANNET_CLIENT_ENGINE_OUTCOME_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/protocol/message.h"

namespace gannet {

// How an operation ended, in one byte. It is made an absl::Status only once, in client/api.
enum class Outcome : uint8_t {
  kOk,               // also a miss, or a lock that was not acquired: `found` tells
  kExists,           // only_if_absent, and the key is there
  kNotFound,         // only_if_present, and the key is not there
  kVersionMismatch,  // only_if_version does not match
  kNotANumber,       // incr: the value is no counter
  kOutOfRange,       // incr: the new number does not fit
  kGrownTooLong,     // append, prepend: the new value does not fit
  kLockLost,         // a write under a lock, or an unlock, came too late; nothing changed
  kMoved,            // flush: partitions moved meanwhile, and what was in them may be left
  kKeysShareWord,    // this client holds the key's lock word for another key
  kTooManyLocks,
  kHeapFull,      // at the server; nothing changed
  kIndexFull,     // the same
  kDiskRefuses,   // the same
  kTooFewCopies,  // the same, of a group
  kTooLong,       // the value, for this server
  kNoCpuAddress,  // a value that is not large cannot land in memory without one
  kNoBuffers,     // this client cannot register memory for a long item or value
  kReadOnly,      // the session may not change anything
  kRefused,       // the server calls the request invalid, though the client checked it
  kUnimplemented,
  kServerBug,    // the answer makes no sense
  kUnavailable,  // not applied
  kUnrouted,     // not applied: it is not known which server has the key
  kUnknown,      // may have been applied
  kFewCopies,    // applied, and lost if the few members of the group that have it are
  kDeadlineExceeded,
};

constexpr absl::StatusCode ToStatusCode(Outcome outcome) {
  if (outcome == Outcome::kOk) [[likely]]
    return absl::StatusCode::kOk;
  switch (outcome) {
    case Outcome::kOk:
      return absl::StatusCode::kOk;
    case Outcome::kExists:
      return absl::StatusCode::kAlreadyExists;
    case Outcome::kNotFound:
      return absl::StatusCode::kNotFound;
    case Outcome::kOutOfRange:
    case Outcome::kGrownTooLong:
      return absl::StatusCode::kOutOfRange;
    case Outcome::kNotANumber:
    case Outcome::kVersionMismatch:
    case Outcome::kKeysShareWord:
    case Outcome::kNoCpuAddress:
      return absl::StatusCode::kFailedPrecondition;
    case Outcome::kTooLong:
      return absl::StatusCode::kInvalidArgument;
    case Outcome::kLockLost:
    case Outcome::kMoved:
      return absl::StatusCode::kAborted;
    case Outcome::kTooManyLocks:
    case Outcome::kHeapFull:
    case Outcome::kIndexFull:
    case Outcome::kDiskRefuses:
    case Outcome::kNoBuffers:
      return absl::StatusCode::kResourceExhausted;
    case Outcome::kReadOnly:
      return absl::StatusCode::kPermissionDenied;
    case Outcome::kUnimplemented:
      return absl::StatusCode::kUnimplemented;
    case Outcome::kRefused:
    case Outcome::kServerBug:
      return absl::StatusCode::kInternal;
    case Outcome::kTooFewCopies:
    case Outcome::kUnavailable:
    case Outcome::kUnrouted:
      return absl::StatusCode::kUnavailable;
    case Outcome::kUnknown:
    case Outcome::kFewCopies:
      return absl::StatusCode::kUnknown;
    case Outcome::kDeadlineExceeded:
      return absl::StatusCode::kDeadlineExceeded;
  }
  return absl::StatusCode::kInternal;
}

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_OUTCOME_H_
