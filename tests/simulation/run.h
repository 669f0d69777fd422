#ifndef GANNET_TESTS_SIMULATION_RUN_H_
#define GANNET_TESTS_SIMULATION_RUN_H_

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "common/base/boot_time.h"
#include "common/base/client_clock.h"
#include "common/base/clocks.h"
#include "common/base/random_source.h"
#include "common/base/server_time.h"
#include "common/rdma/idler.h"
#include "tests/simulation/checks.h"

namespace gannet::simulation {

// State that all parts of one simulated run share: the simulated device and its time, the only
// source of random choices, the trace of events, and the first check that failed.
//
// The process has one Run at a time. One thread.
class Run final : public RandomSource, public ServerTimeSource, public Idler {
 public:
  struct Options {
    uint64_t seed = 0;
    std::set<Check> off;
    bool print = false;  // print the trace to stdout
    bool rails = false;  // the server has two, whose links go down. REQUIRES: SOFTVERBS_DEVICES=2
  };
  explicit Run(Options options);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  uint64_t seed() const { return options_.seed; }
  bool rails() const { return options_.rails; }

  // --- choices
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // Returns a value in [low, high] whose logarithm is uniform, so small values are as likely as
  // large ones.
  int64_t LogUniform(int64_t low, int64_t high);
  uint64_t Next() override { return random_(); }

  // --- time
  int64_t now_ns() const;
  uint64_t wall_ms() const;
  // That of a server whose clock began at the run's wall clock.
  ServerTime Time() const override { return ServerTime::FromMs(wall_ms()); }
  // The clocks of a machine in this run. A process has one run at a time.
  static WallTime Wall();
  Clocks clocks() {
    return {.wall = Wall, .boot = [this] { return BootTime::FromNs(now_ns()); }};
  }
  // Returns a larger number with every call, in step with time. It orders events of the same time.
  int64_t Tick();
  // Returns the tick of a time that is not over.
  static int64_t TickOf(int64_t ns) { return ns << kTickShift; }
  // Says whose code runs from now on: queue pairs that are made belong to that node.
  void OnNode(uint32_t node);
  // Lets packets from one node to another wait, or go on.
  void Cut(uint32_t from, uint32_t to, bool is_cut);
  // Runs one step of the device. Returns false if nothing is left to do until `until_ns`, and time
  // has advanced to it.
  bool StepDevice(int64_t until_ns);
  // Takes a device's link down, or brings it up. SetFaults brings all up.
  void SetLink(int device, bool up);
  // For code that waits for the device in its own loop, as destructors do.
  void Idle() override;
  // While a Waiting exists, reading this clock also steps the device.
  const ClientClock* clock() const { return &clock_; }
  class Waiting {
   public:
    explicit Waiting(Run* run) : run_(run) { run_->clock_.waiting = true; }
    ~Waiting() { run_->clock_.waiting = false; }

   private:
    Run* const run_;
  };

  // Sets the device's faults from now on, in the grammar of softverbs/DESIGN.md.
  void SetFaults(const std::string& plan);
  const std::string& faults() const { return faults_; }

  // --- what happened
  void Note(std::string_view line);
  // Returns a hash of everything noted so far, and of every step of the device.
  uint64_t trace() const { return trace_; }
  uint64_t steps() const { return steps_; }

  // --- checks
  // The first failure of a check that is on ends the run.
  void Fail(Check check, const std::string& what);
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

 private:
  static constexpr int kTickShift = 8;
  class VirtualClock final : public ClientClock {
   public:
    explicit VirtualClock(Run* run) : run_(run) {}
    int64_t MonotonicNs() const override;
    WallTime Wall() const override { return Run::Wall(); }
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
