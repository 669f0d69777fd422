#ifndef SOFTVERBS_NIC_EVENT_QUEUE_H_
#define SOFTVERBS_NIC_EVENT_QUEUE_H_

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "softverbs/base/mutex.h"

namespace softverbs {

// A queue of T behind a descriptor that the application may poll: completion channels, the
// asynchronous events of a context, rdma_cm event channels.
//
// 1. fd() is readable while an event is queued. (Pop takes the token from the descriptor an instant
//    before the event.)
// 2. Pop behaves like read(2) on a kernel channel. It blocks, fails with EAGAIN if the application
//    made fd() non-blocking, or fails with EINTR if a signal handler without SA_RESTART ran.
// 3. The descriptor holds one token (an eventfd semaphore) per queued event. If a Pop has already
//    taken the token of an event that Purge removes, Purge counts an orphan, and that Pop waits
//    again.
//
// Thread safe. The application knows the descriptor, so a forked child keeps it.
template <class T>
class EventQueue {
 public:
  EventQueue() : fd_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {}
  ~EventQueue() {
    if (fd_ >= 0) close(fd_);
  }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // Returns -1 if there was no descriptor left.
  int fd() const { return fd_; }

  void Push(T event) {
    const LockGuard guard(mutex_);
    events_.push_back(std::move(event));
    const uint64_t one = 1;
    // Never blocks, because the counter never reaches 2^64 - 1.
    while (write(fd_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
  }

  // Returns the oldest event, or nullopt and errno (EAGAIN, EINTR).
  std::optional<T> Pop() {
    for (;;) {
      uint64_t token;
      if (read(fd_, &token, sizeof(token)) != sizeof(token)) return std::nullopt;
      const LockGuard guard(mutex_);
      if (orphans_ > 0) {
        --orphans_;
        continue;
      }
      std::optional<T> event(std::move(events_.front()));
      events_.pop_front();
      return event;
    }
  }

  // Removes the queued events for which `match` is true, and returns their number.
  template <class Match>
  size_t Purge(Match match) {
    const LockGuard guard(mutex_);
    size_t removed = 0;
    for (auto event = events_.begin(); event != events_.end();) {
      if (match(*event)) {
        event = events_.erase(event);
        if (!TakeToken()) ++orphans_;
        ++removed;
      } else {
        ++event;
      }
    }
    return removed;
  }

 private:
  // Takes one token. Returns false if a Pop holds it: that Pop has not yet taken its event.
  bool TakeToken() {
    uint64_t token;
    iovec vec{&token, sizeof(token)};
    return preadv2(fd_, &vec, 1, -1, RWF_NOWAIT) == sizeof(token);
  }

  const int fd_;
  Mutex mutex_;
  std::deque<T> events_ SV_GUARDED_BY(mutex_);
  size_t orphans_ SV_GUARDED_BY(mutex_) =
      0;  // Pops whose event was purged after they took the token
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_EVENT_QUEUE_H_
