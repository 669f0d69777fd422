#ifndef GANNET_CLIENT_API_DRIVER_H_
#define GANNET_CLIENT_API_DRIVER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "client/api/fork_guard.h"
#include "client/engine/batch.h"
#include "client/engine/engine.h"
#include "client/engine/wake_fd.h"
#include "common/base/mutex.h"
#include "common/base/wait_stages.h"

namespace gannet {

// Shares an Engine, which has one owner thread, among the threads of a Client, and lets them wait.
//
// One of the waiting threads drives. It polls the engine as long as that pays (wait_stages.h), and
// then sleeps until the engine has something to do. The others sleep until the driving thread wakes
// them: their operations are over, or its own are and another one must drive. While nobody waits, a
// keep-alive thread polls when something is due, so that heartbeats go out and broken connections
// come back.
//
// Thread safe. Destroy it only when no call is under way.
class Driver {
 public:
  Driver(std::unique_ptr<Engine> engine, std::unique_ptr<WakeFd> wake, const Options& options);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Runs the requests, all at once as far as there is room, and waits until each is over. Timeouts
  // count from this call on, and include the time spent waiting for room. A request for which there
  // is no room in time ends without having begun. REQUIRES: all have the same timeout. Calls
  // use(index of the request, const Op&) once for each, in any order, on this thread and without a
  // lock. What the Op views is valid during that call.
  template <class F>
  void Run(std::span<const OpRequest> requests, F use) {
    std::vector<Begun> begun(requests.size());
    RunOps(requests, begun.data(), use);
  }
  template <class F>
  void RunOne(const OpRequest& request, F use) {
    Begun begun;
    RunOps({&request, 1}, &begun, [&](size_t, const Op& op) { use(op); });
  }

  // Looks for copies that answer GETs of keys: of key_of(i) for each i from `first` up to `end`.
  // Calls use(i, std::string_view value, const ItemInfo&) under the lock for each that is answered.
  // REQUIRES: has_near_cache().
  template <class KeyOf, class F>
  void AnswerNear(size_t first, size_t end, KeyOf key_of, F use) {
    entering_.fetch_add(1, std::memory_order_relaxed);
    MutexLock lock(mutex_);
    entering_.fetch_sub(1, std::memory_order_relaxed);
    const int64_t now_ns = clock_.MonotonicNs();
    for (size_t i = first; i < end; ++i) {
      const ItemCopies::Copy* const copy = engine_->FindNear(key_of(i), now_ns);
      if (copy == nullptr) continue;
      const EngineServer& server = engine_->servers()[0];
      use(i, std::string_view(copy->value), server.MakeItemInfo(copy->header, now_ns));
    }
  }

  bool has_near_cache() const { return has_near_cache_; }

  int64_t NowNs() const { return clock_.MonotonicNs(); }
  // Use it only for what never changes in the engine. Anything else needs the mutex; use the
  // functions below.
  const Engine& engine() const { return *engine_; }
  std::vector<ServerInfo> Info();
  // Returns that of one server. It is empty if it is not there any more.
  ServerInfo InfoOf(uint32_t server);
  // Returns an operation's outcome with a text for people.
  absl::Status MakeStatus(const Op& op);
  // Returns an operation that ended before it began.
  Op MakeLateOp(const OpRequest& request);
  bool forked() const { return fork_guard_.forked(); }

 private:
  struct Waiter {
    Batch batch;
    bool chosen = false;  // to drive
    std::condition_variable wake;
  };

  // An operation that a call began and has not taken yet.
  struct Begun {
    uint32_t op;
    uint32_t request;  // its index in the batch
  };

  // Takes the operations of a batch as soon as something waits for a buffer that they may hold, and
  // all of them when all have ended (batch.h).
  template <class F>
  void RunOps(std::span<const OpRequest> requests, Begun* begun, F use) {
    const int64_t called_ns = clock_.MonotonicNs();
    for (size_t done = 0; done < requests.size();) {
      if (done > 0 && clock_.MonotonicNs() - called_ns >= requests[done].timeout_ns) {
        return EndLate(requests, done, use);
      }
      Waiter waiter;
      size_t ended = 0;
      const size_t n = BeginAndWait(requests.subspan(done), called_ns, begun, &waiter, &ended);
      for (std::span<Begun> left(begun, n); !left.empty();) {
        const std::span<Begun> taken = left.first(ended);
        for (const Begun& it : taken) use(done + it.request, engine_->op(it.op));
        left = left.subspan(ended);
        ended = ReleaseAndWait(taken, left, &waiter);
      }
      done += n;
      if (n == 0) return EndLate(requests, done, use);
    }
  }
  // Ends the requests from `first` on, whose time is over, without beginning them: of 100,000 that
  // take turns in a few places, the last would end long after their deadline.
  template <class F>
  void EndLate(std::span<const OpRequest> requests, size_t first, F& use) {
    for (size_t i = first; i < requests.size(); ++i) use(i, MakeLateOp(requests[i]));
  }

  // Begins as many requests as there is room for and returns their number. Waits until some are to
  // be taken, and moves these to the front: `ended` is their number. Returns 0 if there was no room
  // for the first one until its deadline.
  size_t BeginAndWait(std::span<const OpRequest> requests, int64_t called_ns, Begun* begun,
                      Waiter* waiter, size_t* ended);
  // `passed_ns`: since the call. The requests' timeouts count from there.
  size_t BeginSome(std::span<const OpRequest> requests, int64_t passed_ns, Begun* begun,
                   Waiter* waiter) GANNET_REQUIRES(mutex_);
  // Releases the operations that were taken. If any are left, waits until some of these are to be
  // taken, moves them to the front, and returns their number.
  size_t ReleaseAndWait(std::span<const Begun> taken, std::span<Begun> left, Waiter* waiter);
  size_t WaitForSome(std::span<Begun> left, Waiter* waiter) GANNET_REQUIRES(mutex_);
  void Wait(Waiter* waiter) GANNET_REQUIRES(mutex_);
  void Drive(Waiter* waiter) GANNET_REQUIRES(mutex_);
  void WaitALittle() GANNET_REQUIRES(mutex_);
  void SleepOnDevice() GANNET_REQUIRES(mutex_);
  void WakeSleeper() GANNET_REQUIRES(mutex_);
  void PollAndDeliver(int64_t now_ns) GANNET_REQUIRES(mutex_);
  void Deliver() GANNET_REQUIRES(mutex_);
  void WakeHolders() GANNET_REQUIRES(mutex_);
  void ChooseNextDriver() GANNET_REQUIRES(mutex_);
  void WaitFor(std::condition_variable* wake, int64_t ns) GANNET_REQUIRES(mutex_);
  void LetOthersIn() GANNET_REQUIRES(mutex_);
  void KeepAlive();

  const ForkGuard fork_guard_;
  const std::unique_ptr<Engine> engine_;  // used only under mutex_, except for finished Ops
  const std::unique_ptr<WakeFd> wake_;    // likewise, except for its descriptor
  const ClientClock& clock_;
  const bool polls_only_;
  const bool has_near_cache_;

  Mutex mutex_;
  // How many threads are about to take mutex_, so that the driving one gives way. Only a hint, so
  // relaxed order suffices.
  std::atomic<uint32_t> entering_{0};
  WaitStages stages_ GANNET_GUARDED_BY(mutex_);
  Waiter* driver_ GANNET_GUARDED_BY(mutex_) = nullptr;   // the thread that drives
  uint32_t sleepers_ GANNET_GUARDED_BY(mutex_) = 0;      // on wake_
  int64_t keep_alive_ns_ GANNET_GUARDED_BY(mutex_) = 0;  // when the keep-alive thread looks again
  bool stopping_ GANNET_GUARDED_BY(mutex_) = false;
  std::vector<Waiter*> waiter_of_op_ GANNET_GUARDED_BY(mutex_);  // null once it ended
  std::vector<Waiter*> waiting_ GANNET_GUARDED_BY(mutex_);       // asleep
  std::condition_variable stop_;
  std::thread keep_alive_;  // last, because it uses all of the above
};

}  // namespace gannet

#endif  // GANNET_CLIENT_API_DRIVER_H_
