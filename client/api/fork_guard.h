#ifndef GANNET_CLIENT_API_FORK_GUARD_H_
#define GANNET_CLIENT_API_FORK_GUARD_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

namespace gannet {

// Notices that this process was forked after the guard was made. Connections, registered memory and
// threads belong to the parent. Costs one load, no system call. Thread safe.
class ForkGuard {
 public:
  ForkGuard();
  bool forked() const { return forks.load(std::memory_order_relaxed) != forks_; }
  static absl::Status ForkedStatus() {
    return absl::FailedPreconditionError(
        "the client was made before fork(); a child process must connect anew");
  }

 private:
  static void CountFork();

  // Counts the forks between the first process and this one. Written only in the child of a fork,
  // which has one thread, so relaxed order suffices.
  static inline constinit std::atomic<uint32_t> forks{0};

  uint32_t forks_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_API_FORK_GUARD_H_
