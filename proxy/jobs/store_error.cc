#include "proxy/jobs/store_error.h"

#include "absl/strings/str_cat.h"

namespace gannet::proxy {

std::string StoreErrorText(const Operation& operation) {
  switch (operation.code) {
    case absl::StatusCode::kInvalidArgument:
      return operation.refusal.empty() ? "the key or the value is too long" : operation.refusal;
    case absl::StatusCode::kUnavailable:
      return "the store's server cannot be reached; try again";
    case absl::StatusCode::kDeadlineExceeded:
      return "the store's server did not answer in time; a write may still happen";
    case absl::StatusCode::kUnknown:
      return "the store's server was lost, or too many of its copies; the write may have happened";
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

std::string FailedServers(Job& job) {
  std::string text;
  for (const Operation& asked : job.answers()) {
    if (asked.code == absl::StatusCode::kOk) continue;
    const std::vector<std::string>& listed = job.service->servers;
    const std::string name = asked.server < listed.size()
                                 ? listed[asked.server]
                                 : absl::StrCat("group ", asked.server, " of the cluster");
    absl::StrAppend(&text, text.empty() ? "" : "; ", name, ": ", StoreErrorText(asked));
  }
  return text;
}

}  // namespace gannet::proxy
