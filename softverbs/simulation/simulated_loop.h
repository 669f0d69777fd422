#ifndef SOFTVERBS_SIMULATION_SIMULATED_LOOP_H_
#define SOFTVERBS_SIMULATION_SIMULATED_LOOP_H_

#include <sys/epoll.h>

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "softverbs/base/unique_fd.h"
#include "softverbs/nic/loop.h"

namespace softverbs {

// A Loop without a thread: the owner of the process's one thread calls Step. It makes the whole
// device a deterministic function of the calls and of the seed. Packets, timers, posted work and
// ready descriptors wait until the scheduler picks one of them.
//
// 1. Time passes only in Step: a little at each step, and up to the next timer when nothing else
//    can happen.
// 2. One thread; no method blocks.
class SimulatedLoop final : public Loop {
 public:
  static constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

  // Begins a run, after bringing the rest of the previous one to its end. REQUIRES: installed.
  void Restart(uint64_t seed);
  // Makes one step. Time does not jump beyond `until_ns`: if nothing happens before, it is
  // `until_ns` afterwards.
  bool Step(int64_t until_ns = kForever);
  void SetLog(void (*log)(void*, const char*), void* argument) {
    log_ = log;
    log_argument_ = argument;
  }

  Watch Add(int fd, uint32_t epoll_events, Handler handler) override;
  void Modify(Watch watch, uint32_t epoll_events) override;
  void Remove(Watch watch) override;
  Timer RunAt(int64_t monotonic_ns, std::function<void()> fn) override;
  void Cancel(Timer timer) override;
  void Post(std::function<void()> fn) override { posted_.push_back(std::move(fn)); }
  bool OnLoopThread() const override { return true; }
  bool Simulated() const override { return true; }

 private:
  struct Watched {
    int fd;
    std::shared_ptr<Handler> handler;
  };
  using Ready = std::pair<Watch, uint32_t>;

  std::vector<Ready> ReadyWatches() const;
  bool TimerDue() const;
  bool JumpToTimer(int64_t until_ns);
  void RunPosted();
  void RunTimer();
  void RunWatch(const std::vector<Ready>& ready, size_t choice);
  void RunPacket(size_t choice);
  void Log(const std::string& what);

  std::mt19937_64 random_;
  void (*log_)(void*, const char*) = nullptr;
  void* log_argument_ = nullptr;
  uint64_t last_id_ = 0;
  const UniqueFd epoll_{epoll_create1(EPOLL_CLOEXEC)};
  std::map<Watch, Watched> watches_;
  std::map<std::pair<int64_t, Timer>, std::function<void()>> timers_;
  std::map<Timer, int64_t> deadlines_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_SIMULATION_SIMULATED_LOOP_H_
