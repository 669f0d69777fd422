#ifndef GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_TIME_H_
#define GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_TIME_H_

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <utility>

namespace gannet {

// Virtual time, what happens in it, and all chances of a run, from a seed.
class SimulatedTime {
 public:
  static constexpr int64_t kMs = 1'000'000;

  explicit SimulatedTime(uint64_t seed) : random_(seed) {}

  int64_t now() const { return now_; }
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // Whether something goes wrong that does so once in `n` times. Never while it is calm.
  bool Fault(uint64_t n) { return OneIn(n) && !calm_; }
  int64_t BelowMs(uint64_t ms) { return static_cast<int64_t>(Below(ms * kMs)); }
  // How long a message takes.
  int64_t Delay() { return BelowMs(Fault(20) ? 900 : 2); }
  void At(int64_t time, std::function<void()> what) { events_.emplace(time, std::move(what)); }
  void After(int64_t delay, std::function<void()> what) { At(now_ + delay, std::move(what)); }

  // Goes on by some milliseconds, with all that happens until then.
  void Step() {
    now_ += BelowMs(4);
    while (!events_.empty() && events_.begin()->first <= now_) {
      const std::function<void()> what = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      what();
    }
  }
  // From now on nothing goes wrong.
  void CalmDown() { calm_ = true; }
  bool calm() const { return calm_; }

 private:
  std::mt19937_64 random_;
  int64_t now_ = 0;
  bool calm_ = false;
  std::multimap<int64_t, std::function<void()>> events_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_TIME_H_
