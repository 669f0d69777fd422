#ifndef GANNET_TESTS_SIMULATION_RUN_H_
#define GANNET_TESTS_SIMULATION_RUN_H_

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "client/lookup/clock.h"
#include "tests/simulation/checks.h"

namespace gannet::simulation {

// What all parts of one simulated run share: the simulated device and its time, the one source of
// random choices, the trace of what happened, and the first check that failed.
//
// The process has one Run at a time. One thread.
class Run {
 public:
  struct Options {
    uint64_t seed = 0;
    std::set<Check> off;
    bool print = false;  // the trace, to stdout
  };
  explicit Run(Options options);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  uint64_t seed() const { return options_.seed; }

  // --- choices
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // In [low, high], small values as likely as large ones: uniform by its logarithm.
  int64_t LogUniform(int64_t low, int64_t high);
  uint64_t Draw() { return random_(); }

  // --- time
  int64_t now_ns() const;
  uint64_t wall_ms() const;
  // Counts up with every call, and in step with time: orders what happens at one time.
  int64_t Tick();
  // The tick of a time that is not over.
  static int64_t TickOf(int64_t ns) { return ns << kTickShift; }
  // Lets one thing happen in the device. False: nothing is left to happen until `until_ns`, and it
  // is that time now.
  bool StepDevice(int64_t until_ns);
  // For what waits for the device in a loop of its own, as destructors do.
  void Idle();
  // Whoever asks this clock while a Waiting lives lets the device move.
  const Clock* clock() const { return &clock_; }
  class Waiting {
   public:
    explicit Waiting(Run* run) : run_(run) { run_->clock_.waiting = true; }
    ~Waiting() { run_->clock_.waiting = false; }

   private:
    Run* const run_;
  };

  // The device's faults from now on, in the grammar of docs/softverbs.md.
  void SetFaults(const std::string& plan);
  const std::string& faults() const { return faults_; }

  // --- what happened
  void Note(std::string_view line);
  // Of everything noted so far, and of every step of the device.
  uint64_t trace() const { return trace_; }
  uint64_t steps() const { return steps_; }

  // --- checks
  // The first failure of a check that is on ends the run.
  void Fail(Check check, const std::string& what);
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

 private:
  static constexpr int kTickShift = 8;
  class VirtualClock final : public Clock {
   public:
    explicit VirtualClock(Run* run) : run_(run) {}
    int64_t MonotonicNs() const override;
    bool waiting = false;

   private:
    Run* const run_;
  };

  const Options options_;
  std::mt19937_64 random_;
  VirtualClock clock_;
  uint64_t wall_ms_at_start_ = 0;
  int64_t last_tick_ = 0;
  uint64_t steps_ = 0;
  uint64_t trace_ = 0;
  uint64_t plans_ = 0;
  std::string faults_;
  std::string failure_;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_RUN_H_
