#ifndef GANNET_CLIENT_API_FORK_GUARD_H_
#define GANNET_CLIENT_API_FORK_GUARD_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"

namespace gannet {

// Notices that this process is a child made by fork() after the guard was made: connections,
// registered memory and threads are the parent's. Costs one load, no system call. Thread safe.
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

  // How often this process and its ancestors forked, as their children count. Written only in the
  // child of a fork, which has one thread: relaxed suffices.
  static inline constinit std::atomic<uint32_t> forks{0};

  uint32_t forks_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_API_FORK_GUARD_H_
