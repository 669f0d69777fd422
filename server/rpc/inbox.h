#ifndef GANNET_SERVER_RPC_INBOX_H_
#define GANNET_SERVER_RPC_INBOX_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/wake_up.h"
#include "common/protocol/connect.h"
#include "common/rdma/listener.h"
#include "server/memory/tier/tier_reads.h"
#include "server/sessions/locks/lock_service.h"
#include "server/sessions/session/session_copies.h"
#include "server/sessions/session/session_key.h"

namespace gannet {

// A client's decoded request to connect. The id in `connection` is already alive.
struct Arrival {
  uint32_t connection = 0;
  uint64_t name = 0;  // of the request and its connection, from NameOf
  ConnectRequest request{};
  uint8_t rail = 0;  // of the server, by which it came
  IncomingRequest incoming;
  std::shared_ptr<const SessionKey> key = nullptr;  // that proved the request; null: none needed
  bool gone = false;  // the client disconnected before the worker looked at the request
};

// The name that the events of a connection carry (IncomingRequest::Name). It includes the number of
// the request, because the connection ids of refused requests are reused.
inline uint64_t NameOf(uint32_t connection, uint32_t request) {
  return uint64_t{request} << 32 | connection;
}
inline uint32_t ConnectionOfName(uint64_t name) { return static_cast<uint32_t>(name); }

// A message to a worker from the thread that polls the Listener.
struct Notice {
  enum class Type : uint8_t {
    kEstablished,
    kGone,           // disconnected, or never established
    kIndexChanged,   // of no connection: look which generations the clients acknowledge
    kKeysAnnounced,  // of no connection: keys are to be leased, of the announcement `name`
    kRailLost,       // of no connection: the device of the rail of number `name` is gone
  };
  Type type;
  uint64_t name;  // of the connection, from NameOf
};

// The queue from the Listener's thread to a worker, with a file descriptor that is readable while
// the queue may not be empty. Thread safe.
class Inbox final : public TierReadsDone {
 public:
  struct Contents {
    std::deque<Arrival> arrivals;
    std::vector<Notice> notices;
    std::vector<SessionCopy> sessions;  // to adopt, before the arrivals
    std::vector<LockService> locks;     // in their order
    bool close = false;                 // shut down: accept no more arrivals, close all connections
    bool empty() const {
      return arrivals.empty() && notices.empty() && sessions.empty() && locks.empty() && !close;
    }
  };

  // ResourceExhausted: there are no file descriptors left.
  static absl::StatusOr<std::unique_ptr<Inbox>> Create();

  static constexpr size_t kArrivalsMax = 1024;

  // Returns false and leaves `arrival` unchanged if the queue is full: the worker is far behind.
  bool Put(Arrival& arrival);
  // A kGone notice also marks a waiting arrival of that name as gone.
  void Put(Notice notice);
  // Sessions of the former primary, which the worker adopts before the arrivals that are Put later.
  // REQUIRES: they are this worker's (SessionTable::WorkerOf).
  void PutSessions(std::vector<SessionCopy> sessions);
  // The lock rail changes.
  void PutLocks(LockService service);
  void PutClose();
  // Wakes the worker and puts nothing.
  void Wake();
  void OnTierReadsDone() override { Wake(); }

  // Returns true if Take may find something.
  bool filled() const {
    // Relaxed: Take checks again.
    return filled_.load(std::memory_order_relaxed);
  }
  // Takes everything, but at most `arrivals_max` arrivals. Each kind keeps its order.
  Contents Take(size_t arrivals_max);

  // The number of arrivals that wait to be taken.
  size_t arrivals() const;

  // To sleep: wait until fd() is readable, call Silence, then Take.
  int fd() const { return wake_up_->fd(); }
  void Silence() { wake_up_->Take(); }

 private:
  explicit Inbox(std::unique_ptr<WakeUp> wake_up) : wake_up_(std::move(wake_up)) {}

  const std::unique_ptr<WakeUp> wake_up_;
  mutable Mutex mutex_;
  Contents contents_ GANNET_GUARDED_BY(mutex_);
  // True if contents_ may not be empty. While it is false Take needs no lock. Set with release
  // after the contents and before the wake-up, taken with acquire. So a thread that takes it, or
  // was woken, finds the contents.
  std::atomic<bool> filled_{false};
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_INBOX_H_
