#include "softverbs/nic/bells.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "softverbs/base/mutex.h"

namespace softverbs {
namespace {

// Returns true if `fd` is an eventfd. A hostile peer could send another descriptor, such as a full
// pipe, and writing into that would block.
bool IsEventFd(int fd) {
  char link[64];
  char target[64];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, target, sizeof(target));
  return size > 0 && std::string_view(target, static_cast<size_t>(size)) == "anon_inode:[eventfd]";
}

}  // namespace

uint32_t Bells::Add(int fd) {
  const LockGuard guard(mutex_);
  fds_.emplace(++last_, fd);
  return last_;
}

void Bells::Remove(uint32_t bell) {
  const LockGuard guard(mutex_);
  fds_.erase(bell);
}

UniqueFd Bells::Open(uint32_t bell) {
  const LockGuard guard(mutex_);
  auto found = fds_.find(bell);
  if (found == fds_.end()) return UniqueFd();
  return UniqueFd(fcntl(found->second, F_DUPFD_CLOEXEC, 0));
}

bool Bells::Rung(uint32_t bell) {
  const LockGuard guard(mutex_);
  auto found = fds_.find(bell);
  if (found == fds_.end()) return false;
  pollfd entry{found->second, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

bool RingBell(int fd) {
  const uint64_t one = 1;
  ssize_t written;
  do {
    written = write(fd, &one, sizeof(one));
  } while (written < 0 && errno == EINTR);
  return written == sizeof(one);
}

// 0 is no bell, but the loop thread.
PeerBells::Found PeerBells::Find(uint32_t number) {
  if (number == 0) return {};
  for (const Bell& bell : bells_) {
    if (bell.number == number) return {.fd = bell.fd};
  }
  if (bells_.size() >= kMax) return {};
  bells_.push_back({number, nullptr});
  return {.fd = nullptr, .ask_for_it = true};
}

void PeerBells::Install(uint32_t number, UniqueFd fd) {
  if (!IsEventFd(fd.get())) return;
  for (Bell& bell : bells_) {
    if (bell.number != number || bell.fd != nullptr) continue;
    bell.fd = std::make_shared<const UniqueFd>(std::move(fd));
    return;
  }
}

void PeerBells::Retire(uint32_t number) {
  bells_.erase(std::remove_if(bells_.begin(), bells_.end(),
                              [number](const Bell& bell) { return bell.number == number; }),
               bells_.end());
}

}  // namespace softverbs
