#include "client/c/report_status.h"

#include <cstdlib>
#include <string>

namespace gannet {
namespace {

static_assert(GANNET_UNKNOWN == static_cast<int>(absl::StatusCode::kUnknown));
static_assert(GANNET_INVALID_ARGUMENT == static_cast<int>(absl::StatusCode::kInvalidArgument));
static_assert(GANNET_DEADLINE_EXCEEDED == static_cast<int>(absl::StatusCode::kDeadlineExceeded));
static_assert(GANNET_NOT_FOUND == static_cast<int>(absl::StatusCode::kNotFound));
static_assert(GANNET_ALREADY_EXISTS == static_cast<int>(absl::StatusCode::kAlreadyExists));
static_assert(GANNET_PERMISSION_DENIED == static_cast<int>(absl::StatusCode::kPermissionDenied));
static_assert(GANNET_RESOURCE_EXHAUSTED == static_cast<int>(absl::StatusCode::kResourceExhausted));
static_assert(GANNET_FAILED_PRECONDITION ==
              static_cast<int>(absl::StatusCode::kFailedPrecondition));
static_assert(GANNET_ABORTED == static_cast<int>(absl::StatusCode::kAborted));
static_assert(GANNET_OUT_OF_RANGE == static_cast<int>(absl::StatusCode::kOutOfRange));
static_assert(GANNET_UNIMPLEMENTED == static_cast<int>(absl::StatusCode::kUnimplemented));
static_assert(GANNET_INTERNAL == static_cast<int>(absl::StatusCode::kInternal));
static_assert(GANNET_UNAVAILABLE == static_cast<int>(absl::StatusCode::kUnavailable));

thread_local std::string last_error;

}  // namespace

gannet_status Report(const absl::Status& status) {
  if (status.ok() || absl::IsNotFound(status)) return static_cast<int>(status.code());
  last_error.assign(status.message().data(), status.message().size());
  return static_cast<int>(status.code());
}

}  // namespace gannet

const char* gannet_strerror(gannet_status status) {
  switch (status) {
    case GANNET_OK:
      return "ok";
    case GANNET_UNKNOWN:
      return "the write may or may not have been applied";
    case GANNET_INVALID_ARGUMENT:
      return "invalid argument";
    case GANNET_DEADLINE_EXCEEDED:
      return "deadline exceeded";
    case GANNET_NOT_FOUND:
      return "not found";
    case GANNET_ALREADY_EXISTS:
      return "already exists";
    case GANNET_PERMISSION_DENIED:
      return "permission denied";
    case GANNET_RESOURCE_EXHAUSTED:
      return "resource exhausted";
    case GANNET_FAILED_PRECONDITION:
      return "failed precondition";
    case GANNET_ABORTED:
      return "the lock was lost";
    case GANNET_OUT_OF_RANGE:
      return "out of range";
    case GANNET_UNIMPLEMENTED:
      return "unimplemented";
    case GANNET_INTERNAL:
      return "internal error";
    case GANNET_UNAVAILABLE:
      return "unavailable";
    case GANNET_LOCKED:
      return "another client holds the lock";
    default:
      return "another error";
  }
}

const char* gannet_last_error(void) { return gannet::last_error.c_str(); }

const char* gannet_version(void) { return GANNET_VERSION; }

void gannet_free(void* memory) { std::free(memory); }
