#ifndef SOFTVERBS_NIC_EPOLL_LOOP_H_
#define SOFTVERBS_NIC_EPOLL_LOOP_H_

#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/base/unique_fd.h"
#include "softverbs/nic/loop.h"

namespace softverbs {

// Implements Loop with one epoll descriptor.
class EpollLoop final : public Loop {
 public:
  // Check valid() afterwards. It is false if there were no descriptors left.
  EpollLoop();
  bool valid() const { return epoll_ && wake_ && timer_; }
  // Starts the thread. REQUIRES: valid, called once, and the object is never destroyed.
  void StartThread();

  Watch Add(int fd, uint32_t epoll_events, Handler handler) override;
  void Modify(Watch watch, uint32_t epoll_events) override;
  void Remove(Watch watch) override;
  Timer RunAt(int64_t monotonic_ns, std::function<void()> fn) override;
  void Cancel(Timer timer) override;
  void Post(std::function<void()> fn) override;
  bool OnLoopThread() const override;

 private:
  using Deadline = std::pair<int64_t, Timer>;
  struct Watched {
    int fd;
    std::shared_ptr<Handler> handler;
  };

  void Run();
  void Dispatch(Watch watch, uint32_t events);
  void RunTimers();
  void RunPosted();
  // Runs `fn` with `id` marked as running, so that Remove and Cancel can wait for it.
  template <class Fn>
  void RunMarked(uint64_t id, Fn&& fn) SV_REQUIRES(mutex_);
  void WaitWhileRunning(uint64_t id) SV_REQUIRES(mutex_);
  void ArmTimerFd() SV_REQUIRES(mutex_);

  // Immutable after the constructor.
  UniqueFd epoll_;
  UniqueFd wake_;
  UniqueFd timer_;

  std::thread::id thread_id_;  // written once by Start, before anything is dispatched

  Mutex mutex_;
  Condition ran_;
  // One counter gives the ids of watches and timers, and no id is reused. So an
  // event of a closed descriptor cannot reach the watch of a new descriptor with the same number.
  uint64_t last_id_ SV_GUARDED_BY(mutex_) = 2;
  uint64_t running_ SV_GUARDED_BY(mutex_) = 0;
  std::unordered_map<Watch, Watched> watches_ SV_GUARDED_BY(mutex_);
  std::map<Deadline, std::function<void()>> timers_ SV_GUARDED_BY(mutex_);
  std::unordered_map<Timer, int64_t> deadlines_ SV_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> posted_ SV_GUARDED_BY(mutex_);
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_EPOLL_LOOP_H_
