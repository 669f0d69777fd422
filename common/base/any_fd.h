#ifndef GANNET_COMMON_BASE_ANY_FD_H_
#define GANNET_COMMON_BASE_ANY_FD_H_

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace gannet {

// A descriptor that is readable as long as any of some others is, for who can wait for one only.
// The others outlive it. Thread safe.
class AnyFd {
 public:
  // ResourceExhausted: there are no file descriptors left.
  static absl::StatusOr<std::unique_ptr<AnyFd>> Of(std::span<const int> fds) {
    std::unique_ptr<AnyFd> made(new AnyFd(epoll_create1(EPOLL_CLOEXEC)));
    bool failed = made->fd_ < 0;
    for (const int fd : fds) {
      epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
      failed = failed || epoll_ctl(made->fd_, EPOLL_CTL_ADD, fd, &event) != 0;
    }
    if (!failed) return made;
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot wait for several descriptors: ", std::strerror(errno)));
  }
  ~AnyFd() {
    if (fd_ >= 0) close(fd_);
  }
  AnyFd(const AnyFd&) = delete;
  AnyFd& operator=(const AnyFd&) = delete;

  int fd() const { return fd_; }

 private:
  explicit AnyFd(int fd) : fd_(fd) {}

  const int fd_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_ANY_FD_H_
