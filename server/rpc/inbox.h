#ifndef GANNET_SERVER_RPC_INBOX_H_
#define GANNET_SERVER_RPC_INBOX_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/protocol/connect.h"
#include "common/rdma/listener.h"

namespace gannet {

// A client that wants to connect, decoded; `connection` is an id that is already alive.
struct Arrival {
  uint32_t connection = 0;
  uint64_t name = 0;  // of the request and its connection, as NameOf
  ConnectRequest request{};
  IncomingRequest incoming;
  bool gone = false;  // its client went before it was looked at
};

// What the events of a connection are called by (IncomingRequest::Name): the ids of requests that
// were refused are used again, so it takes the number of the request too.
inline uint64_t NameOf(uint32_t connection, uint32_t request) {
  return uint64_t{request} << 32 | connection;
}
inline uint32_t ConnectionOfName(uint64_t name) { return static_cast<uint32_t>(name); }

// What the thread that polls the Listener tells a worker.
struct Notice {
  enum class Type : uint8_t {
    kEstablished,
    kGone,  // disconnected, or never established
  };
  Type type;
  uint64_t name;  // of the connection, as NameOf
};

// The way from the Listener's thread to a worker: a queue, and a file descriptor that is readable
// while something may be in it. Thread safe.
class Inbox {
 public:
  struct Contents {
    std::deque<Arrival> arrivals;
    std::vector<Notice> notices;
    bool close = false;  // shut down: take no more arrivals, close all connections
    bool empty() const { return arrivals.empty() && notices.empty() && !close; }
  };

  // ResourceExhausted: no file descriptors.
  static absl::StatusOr<std::unique_ptr<Inbox>> Create();
  ~Inbox();

  static constexpr size_t kArrivalsMax = 1024;

  // False, and `arrival` is left as it was: the worker is far behind.
  bool Put(Arrival& arrival);
  // An arrival that waits here is told that it is gone, if that is the notice.
  void Put(Notice notice);
  void PutClose();
  // Only wakes the worker.
  void Wake();

  // True if Take would find something.
  bool filled() const {
    // Relaxed: Take looks again.
    return filled_.load(std::memory_order_relaxed);
  }
  // Takes everything, in the order of each kind, but at most so many arrivals.
  Contents Take(size_t arrivals_max);

  // That wait to be taken.
  size_t arrivals() const;

  // Sleeping: wait until fd() is readable, Silence, then Take.
  int fd() const { return fd_; }
  void Silence();

 private:
  explicit Inbox(int fd) : fd_(fd) {}

  const int fd_;  // an eventfd
  mutable Mutex mutex_;
  Contents contents_ GANNET_GUARDED_BY(mutex_);
  // Something may be in contents_: saves the lock when not. Set with release after the contents and
  // before the wake-up, taken with acquire: whoever takes it, or was woken, finds the contents.
  std::atomic<bool> filled_{false};
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_INBOX_H_
