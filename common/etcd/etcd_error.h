#ifndef GANNET_COMMON_ETCD_ETCD_ERROR_H_
#define GANNET_COMMON_ETCD_ETCD_ERROR_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace gannet {

// Returns what an answer with this HTTP status says went wrong, as text that says what to do.
// `text` is the answer's body, or a line of a watch's answer. Returns OK if it is no error.
//   Unavailable: etcd cannot answer now; another member may.
//   Unauthenticated, PermissionDenied: etcd wants a user.
//   FailedPrecondition: this is no etcd of version 3.4 or later.
//   InvalidArgument: etcd understood, and refuses.
absl::Status EtcdError(int http_status, std::string_view text);

// Returns whether etcd executed nothing of a request that got this error, and will not either. Of
// other errors nobody knows: etcd says that it has no space after it executed the txn.
bool WasNotExecuted(const absl::Status& error);

// Returns the text as printable ASCII, cut to a length that fits into a message.
std::string Printable(std::string_view text);

}  // namespace gannet

#endif  // GANNET_COMMON_ETCD_ETCD_ERROR_H_
