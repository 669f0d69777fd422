#ifndef GANNET_TESTS_SIMULATION_PACE_H_
#define GANNET_TESTS_SIMULATION_PACE_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "tests/simulation/run.h"

namespace gannet::simulation {

// How a world's time passes: turns while something moves, and jumps while nothing does.
//
// Thread safety: one thread.
class Pace {
 public:
  // What the world does.
  struct World {
    std::function<bool()> over;
    std::function<void()> turn;  // polls somebody, and lets happen what is due
    std::function<void()> poll_everybody;
    std::function<int64_t()> next_ns;  // when somebody begins something
  };

  // `turns_max`: far more than a run needs. A run that exceeds it never ends.
  Pace(Run* run, uint64_t turns_max, World world)
      : run_(run), turns_max_(turns_max), world_(std::move(world)) {}

  // Steps everybody until `until_ns`, or until done() returns true if that comes first.
  void StepUntil(int64_t until_ns, const std::function<bool()>& done);
  bool never_ends() const { return turns_ > turns_max_; }

 private:
  Run* const run_;
  const uint64_t turns_max_;
  const World world_;
  uint64_t turns_ = 0;
};

// Returns how long a client waits before it acts again, if it is to act so often in `span_ns`.
// Clients act in bursts: most gaps are short, few are long.
int64_t GapNs(Run* run, int64_t span_ns, uint32_t acts);
// Returns the same for one that hurries (SimulatedClient).
int64_t ShortGapNs(Run* run);

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_PACE_H_
