#ifndef GANNET_SERVER_RPC_INBOX_H_
#define GANNET_SERVER_RPC_INBOX_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/protocol/connect.h"
#include "common/rdma/listener.h"

namespace gannet {

// A client that wants to connect, decoded; named `connection` (IncomingRequest::Name), an id that
// is already alive.
struct Arrival {
  uint32_t connection = 0;
  ConnectRequest request{};
  IncomingRequest incoming;
};

// What the thread that polls the Listener tells a worker.
struct Notice {
  enum class Type : uint8_t {
    kEstablished,
    kGone,  // disconnected, or never established
  };
  Type type;
  uint32_t connection;
};

// The way from the Listener's thread to a worker: a queue, and a file descriptor that is readable
// while something may be in it. Thread safe.
class Inbox {
 public:
  struct Contents {
    std::vector<Arrival> arrivals;
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
  void Put(Notice notice);
  void PutClose();
  // Only wakes the worker.
  void Wake();

  // Takes everything, in the order of each kind. Cheap when there is nothing.
  Contents Take();

  // Sleeping: wait until fd() is readable, Silence, then Take.
  int fd() const { return fd_; }
  void Silence();

 private:
  explicit Inbox(int fd) : fd_(fd) {}

  const int fd_;  // an eventfd
  Mutex mutex_;
  Contents contents_ GANNET_GUARDED_BY(mutex_);
  // Something may be in contents_: saves the lock when not. Set with release after the contents and
  // before the wake-up, taken with acquire: whoever takes it, or was woken, finds the contents.
  std::atomic<bool> filled_{false};
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_INBOX_H_
