#ifndef SOFTVERBS_TESTS_SIMULATION_SIMULATION_H_
#define SOFTVERBS_TESTS_SIMULATION_SIMULATION_H_

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "softverbs/control.h"
#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {

// A run of the simulated device, with the faults of `plan` ("" = none), and its event log. The
// process has one run at a time.
class Simulation {
 public:
  explicit Simulation(uint64_t seed, const std::string& plan = "");
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Steps until nothing is left to happen.
  void RunUntilIdle();
  // Adds a line to the log.
  void Note(const std::string& line) { log_ += line + "\n"; }
  const std::string& log() const { return log_; }

 private:
  std::string log_;
};

// Runs until idle, and returns all completions.
std::vector<ibv_wc> Drain(Simulation& simulation, Side& side);
// Runs until idle, and returns the only completion.
ibv_wc Only(Simulation& simulation, Side& side);

std::string ToString(const ibv_wc& wc);

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_SIMULATION_SIMULATION_H_
