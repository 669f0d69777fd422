#ifndef SOFTVERBS_TESTS_SIMULATION_FAULT_FIXTURE_H_
#define SOFTVERBS_TESTS_SIMULATION_FAULT_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "softverbs/tests/simulation/simulation.h"

namespace softverbs {

inline constexpr uint64_t kSeed = 7;

// A connected pair on the simulated device, with a fault plan.
class FaultTest : public testing::Test {
 protected:
  // Call it before the device is used: regions keep the plan under which they were registered.
  void Begin(const std::string& plan, uint64_t seed = kSeed, const ConnectOptions& connect = {}) {
    pair_.reset();
    device_.reset();
    simulation_.reset();
    simulation_ = std::make_unique<Simulation>(seed, plan);
    device_ = OpenDevice();
    const SideOptions options{.kind = MemoryKind::kMapped};
    pair_ = std::make_unique<Pair>(device_.get(), options, options, connect);
  }

  Side& a() { return pair_->a; }
  Side& b() { return pair_->b; }
  Simulation& simulation() { return *simulation_; }

  // Posts `count` operations at once on a(), and returns their completions.
  std::vector<ibv_wc> Run(int count, const std::function<void(int)>& post) {
    for (int i = 0; i < count; ++i) post(i);
    return Drain(simulation(), a());
  }

  std::unique_ptr<Simulation> simulation_;
  Owned<ibv_context> device_;
  std::unique_ptr<Pair> pair_;
};

inline std::string Statuses(const std::vector<ibv_wc>& completions) {
  std::string all;
  for (const ibv_wc& wc : completions) all += ToString(wc) + "\n";
  return all;
}

// Runs `scenario` twice with one seed and once with another: what it returns must be the same the
// first two times. Returns whether the other seed differed.
inline bool Replays(const std::function<std::string(uint64_t seed)>& scenario) {
  const std::string first = scenario(kSeed);
  EXPECT_EQ(scenario(kSeed), first) << "the seed does not give the run again";
  return scenario(kSeed + 1) != first;
}

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_SIMULATION_FAULT_FIXTURE_H_
