#ifndef SOFTVERBS_NIC_EVENT_QUEUE_H_
#define SOFTVERBS_NIC_EVENT_QUEUE_H_

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace softverbs {

// A queue of T behind a descriptor that the application may poll: completion channels, the
// asynchronous events of a context, rdma_cm event channels.
//
// 1. fd() is readable exactly while an event is queued (to a hair: a Pop takes its token from the
//    descriptor an instant before the event).
// 2. Pop blocks, or fails with EAGAIN when the application made fd() non-blocking, or with EINTR
//    when a signal handler without SA_RESTART ran: what read(2) on a kernel channel does.
// 3. The descriptor holds one token (an eventfd semaphore) per queued event. When a Purge finds the
//    token of its event already taken by a Pop, it leaves an orphan, and that Pop waits again.
// Thread safe. The descriptor is the application's to see, so a forked child keeps it.
template <class T>
class EventQueue {
 public:
  EventQueue() : fd_(eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {}
  ~EventQueue() {
    if (fd_ >= 0) close(fd_);
  }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // -1 when the process ran out of descriptors.
  int fd() const { return fd_; }

  void Push(T event) {
    std::lock_guard<std::mutex> guard(mutex_);
    events_.push_back(std::move(event));
    const uint64_t one = 1;
    // Never blocks: the counter would have to reach 2^64 - 1.
    while (write(fd_, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
  }

  // The oldest event, or nothing and errno (EAGAIN, EINTR).
  std::optional<T> Pop() {
    for (;;) {
      uint64_t token;
      if (read(fd_, &token, sizeof(token)) != sizeof(token)) return std::nullopt;
      std::lock_guard<std::mutex> guard(mutex_);
      if (orphans_ > 0) {
        --orphans_;
        continue;
      }
      std::optional<T> event(std::move(events_.front()));
      events_.pop_front();
      return event;
    }
  }

  // Removes and counts the queued events for which `match` is true.
  template <class Match>
  size_t Purge(Match match) {
    std::lock_guard<std::mutex> guard(mutex_);
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

  bool Empty() {
    std::lock_guard<std::mutex> guard(mutex_);
    return events_.empty();
  }

 private:
  // Takes one token; false when a Pop between its two steps has it.
  bool TakeToken() {
    uint64_t token;
    iovec vec{&token, sizeof(token)};
    return preadv2(fd_, &vec, 1, -1, RWF_NOWAIT) == sizeof(token);
  }

  const int fd_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::deque<T> events_;
  size_t orphans_ = 0;  // Pops whose token stands for no event any more
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_EVENT_QUEUE_H_
