#ifndef GANNET_COMMON_BASE_WAKE_UP_H_
#define GANNET_COMMON_BASE_WAKE_UP_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace gannet {

// Lets any thread wake one that may sleep. Thread safe.
class WakeUp {
 public:
  // ResourceExhausted: there are no file descriptors left.
  static absl::StatusOr<std::unique_ptr<WakeUp>> Create() {
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot create an eventfd: ", std::strerror(errno)));
    }
    return std::unique_ptr<WakeUp>(new WakeUp(fd));
  }
  ~WakeUp() { close(fd_); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  void Ask() {
    // Release, and acquire in Take: the woken thread sees what led to the call.
    if (asked_.exchange(true, std::memory_order_release)) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(fd_, &one, sizeof(one));
  }
  // Returns whether Ask was called since the last Take.
  bool Take() {
    if (!asked_.load(std::memory_order_relaxed)) return false;
    uint64_t count;
    [[maybe_unused]] const ssize_t n = read(fd_, &count, sizeof(count));
    return asked_.exchange(false, std::memory_order_acquire);
  }
  // Readable if Ask was called and Take was not.
  int fd() const { return fd_; }

 private:
  explicit WakeUp(int fd) : fd_(fd) {}

  const int fd_;
  std::atomic<bool> asked_{false};
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_WAKE_UP_H_
