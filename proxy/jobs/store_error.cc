#include "proxy/jobs/store_error.h"

#include "absl/strings/str_cat.h"

namespace gannet::proxy {

namespace {

// As the proxy's --server names it.
std::string NameOf(const Operation& operation) {
  const Service* service = operation.job->service;
  if (service == nullptr) return "the store's server";
  if (operation.server < service->servers.size()) return service->servers[operation.server];
  return absl::StrCat("group ", operation.server, " of the cluster");
}

bool IsOfServer(const Operation& operation) {
  return operation.code == absl::StatusCode::kUnavailable ||
         operation.code == absl::StatusCode::kDeadlineExceeded ||
         operation.code == absl::StatusCode::kUnknown;
}

// Begins with a verb if the server is what failed.
std::string ReasonOf(const Operation& operation) {
  switch (operation.code) {
    case absl::StatusCode::kInvalidArgument:
      return operation.refusal.empty() ? "the key or the value is too long" : operation.refusal;
    case absl::StatusCode::kUnavailable:
      return "cannot be reached; try again";
    case absl::StatusCode::kDeadlineExceeded:
      return "did not answer in time; a write may still happen";
    case absl::StatusCode::kUnknown:
      return "was lost, or too many of its copies; the write may have happened";
    case absl::StatusCode::kResourceExhausted:
      return operation.refusal.empty() ? "out of memory storing object" : operation.refusal;
    case absl::StatusCode::kPermissionDenied:
      return "the proxy's key may only read";
    case absl::StatusCode::kOutOfRange:
      return "the answer is too long";
    case absl::StatusCode::kAborted:
      if (operation.kind == Operation::Kind::kFlush) {
        return "partitions move between groups, and what was in them may be left; try again";
      }
      [[fallthrough]];
    case absl::StatusCode::kFailedPrecondition:
      return "others changed the key all the time; try again";
    default:
      return absl::StrCat("the store answers ", absl::StatusCodeToString(operation.code));
  }
}

}  // namespace

std::string StoreErrorText(const Operation& operation) {
  const std::string reason = ReasonOf(operation);
  return IsOfServer(operation) ? absl::StrCat(NameOf(operation), " ", reason) : reason;
}

std::string ServerErrorText(const Operation& asked) {
  return absl::StrCat(NameOf(asked), ": ", ReasonOf(asked));
}

std::string FailedServers(Job& job) {
  std::string text;
  for (const Operation& asked : job.answers()) {
    if (asked.code == absl::StatusCode::kOk) continue;
    absl::StrAppend(&text, text.empty() ? "" : "; ", ServerErrorText(asked));
  }
  return text;
}

}  // namespace gannet::proxy
