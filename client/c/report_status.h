#ifndef GANNET_CLIENT_C_REPORT_STATUS_H_
#define GANNET_CLIENT_C_REPORT_STATUS_H_

#include <gannet/gannet.h>

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace gannet {

// How the C functions report errors. The numbers of absl::StatusCode are those of gannet_status.

// Returns the status's code. Keeps its text for gannet_last_error, unless it is OK or NotFound.
// NotFound is an answer.
gannet_status Report(const absl::Status& status);

// The first error of many results. A miss is none.
class FirstError {
 public:
  // Returns the status's code.
  gannet_status Add(const absl::Status& status) {
    if (first_.ok() && !status.ok() && !absl::IsNotFound(status)) first_ = status;
    return static_cast<gannet_status>(status.code());
  }
  gannet_status Take() const { return Report(first_); }

 private:
  absl::Status first_;
};

inline std::string_view Bytes(const void* data, size_t size) {
  return {static_cast<const char*>(data), size};
}

}  // namespace gannet

#endif  // GANNET_CLIENT_C_REPORT_STATUS_H_
