#include "server/rpc/inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<Inbox>> Inbox::Create() {
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot create an eventfd: ", std::strerror(errno)));
  }
  return std::unique_ptr<Inbox>(new Inbox(fd));
}

Inbox::~Inbox() { close(fd_); }

bool Inbox::Put(Arrival& arrival) {
  {
    MutexLock lock(mutex_);
    if (contents_.arrivals.size() >= kArrivalsMax) return false;
    contents_.arrivals.push_back(std::move(arrival));
  }
  Wake();
  return true;
}

void Inbox::Put(Notice notice) {
  {
    MutexLock lock(mutex_);
    for (Arrival& arrival : contents_.arrivals) {
      arrival.gone |= arrival.name == notice.name && notice.type == Notice::Type::kGone;
    }
    contents_.notices.push_back(notice);
  }
  Wake();
}

void Inbox::PutSessions(std::vector<SessionCopy> sessions) {
  {
    MutexLock lock(mutex_);
    std::move(sessions.begin(), sessions.end(), std::back_inserter(contents_.sessions));
  }
  Wake();
}

void Inbox::PutClose() {
  {
    MutexLock lock(mutex_);
    contents_.close = true;
  }
  Wake();
}

void Inbox::Wake() {
  filled_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  // The write fails only if the counter is full, and then the descriptor is readable anyway.
  [[maybe_unused]] const ssize_t n = write(fd_, &one, sizeof(one));
}

void Inbox::Silence() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(fd_, &count, sizeof(count));
}

size_t Inbox::arrivals() const {
  MutexLock lock(mutex_);
  return contents_.arrivals.size();
}

Inbox::Contents Inbox::Take(size_t arrivals_max) {
  // Load first: an exchange would take the cache line from the other thread at every Poll.
  if (!filled()) return {};
  filled_.exchange(false, std::memory_order_acquire);
  MutexLock lock(mutex_);
  Contents taken{.notices = std::exchange(contents_.notices, {}),
                 .sessions = std::exchange(contents_.sessions, {}),
                 .close = std::exchange(contents_.close, false)};
  for (; arrivals_max > 0 && !contents_.arrivals.empty(); --arrivals_max) {
    taken.arrivals.push_back(std::move(contents_.arrivals.front()));
    contents_.arrivals.pop_front();
  }
  // Relaxed: only this thread takes.
  if (!contents_.arrivals.empty()) filled_.store(true, std::memory_order_relaxed);
  return taken;
}

}  // namespace gannet
