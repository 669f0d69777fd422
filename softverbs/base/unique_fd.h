#ifndef SOFTVERBS_BASE_UNIQUE_FD_H_
#define SOFTVERBS_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

#include "softverbs/base/fork.h"

namespace softverbs {

// A file descriptor that the library owns. A forked child closes its copies of all of them (see
// fork.h), because a socket that lives on in a child would hide the parent's death from its peers.
// Descriptors that the application sees (channels) are plain ints instead.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) { TrackForkFd(fd_, true); }
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  void Reset() {
    if (fd_ < 0) return;
    TrackForkFd(fd_, false);
    close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_UNIQUE_FD_H_
