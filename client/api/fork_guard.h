#ifndef GANNET_CLIENT_API_FORK_GUARD_H_
#define GANNET_CLIENT_API_FORK_GUARD_H_

#include <cstdint>

#include "absl/status/status.h"

namespace gannet {

// Notices that this process is a child made by fork() after the guard was made: connections,
// registered memory and threads are the parent's. Costs one load, no system call. Thread safe.
class ForkGuard {
 public:
  ForkGuard();
  bool forked() const;
  static absl::Status ForkedStatus() {
    return absl::FailedPreconditionError(
        "the client was made before fork(); a child process must connect anew");
  }

 private:
  uint32_t forks_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_API_FORK_GUARD_H_
