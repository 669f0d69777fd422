#include "tests/simulation/run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clocks.h"
#include "common/base/hash.h"
#include "softverbs/control.h"

namespace gannet::simulation {
namespace {

// Years after the machine's clock, and different by days in each run. So code that reads the
// machine's clock is found.
constexpr uint64_t kWallMsAtStart = 1'900'000'000'000;
constexpr uint64_t kWallMsDiffering = 300'000'000;
constexpr int64_t kIdleNs = 20 * kNsPerUs;

Run* the_run = nullptr;  // a WallClock has no state of its own

}  // namespace

Run::Run(Options options)
    : options_(std::move(options)), random_(options_.seed), clock_(this), trace_(options_.seed) {
  the_run = this;
  wall_ms_at_start_ = kWallMsAtStart + Below(kWallMsDiffering);
  GANNET_CHECK(softverbs_simulate(options_.seed) == 0, "the device was used before the simulation");
  softverbs_set_event_log([](void* self, const char* line) { static_cast<Run*>(self)->Note(line); },
                          this);
  SetFaults("");
}

Run::~Run() {
  softverbs_set_event_log(nullptr, nullptr);
  softverbs_clear_faults();
}

int64_t Run::LogUniform(int64_t low, int64_t high) {
  const double share = static_cast<double>(Below(1 << 20)) / (1 << 20);
  const double ratio = static_cast<double>(high) / static_cast<double>(std::max<int64_t>(low, 1));
  return std::clamp(
      static_cast<int64_t>(static_cast<double>(std::max<int64_t>(low, 1)) * std::pow(ratio, share)),
      low, high);
}

int64_t Run::now_ns() const { return softverbs_now_ns(); }

uint64_t Run::wall_ms() const {
  return wall_ms_at_start_ + static_cast<uint64_t>(now_ns() / kNsPerMs);
}

WallTime Run::Wall() {
  return WallTime::FromNs(static_cast<int64_t>(the_run->wall_ms()) * kNsPerMs);
}

int64_t Run::Tick() { return last_tick_ = std::max(last_tick_ + 1, TickOf(now_ns())); }

void Run::OnNode(uint32_t node) { softverbs_simulate_node(node); }

void Run::Cut(uint32_t from, uint32_t to, bool is_cut) {
  Note(absl::StrCat(is_cut ? "cut " : "heal ", from, ">", to));
  softverbs_simulate_cut(from, to, is_cut ? 1 : 0);
}

void Run::SetLink(int device, bool up) {
  Note(absl::StrCat(up ? "link up " : "link down ", device));
  GANNET_CHECK(softverbs_set_port(device, up ? 1 : 0) == 0, "there is no such device");
}

bool Run::StepDevice(int64_t until_ns) {
  ++steps_;
  return softverbs_step_until(until_ns) != 0;
}

void Run::Idle() { StepDevice(now_ns() + kIdleNs); }

int64_t Run::VirtualClock::MonotonicNs() const {
  if (waiting) run_->Idle();
  return run_->now_ns();
}

// There is always a plan, because with a plan the device works only in its steps.
void Run::SetFaults(const std::string& plan) {
  Note(absl::StrCat("faults ", plan));
  faults_ = plan;
  const std::string text =
      absl::StrCat("seed=", options_.seed + ++plans_, plan.empty() ? "" : ",", plan);
  char error[512] = "";
  GANNET_CHECK(softverbs_set_faults(text.c_str(), error, sizeof(error)) == 0, error);
}

void Run::Note(std::string_view line) {
  trace_ = Xxh3(line.data(), line.size(), trace_);
  if (options_.print) {
    std::printf("%llu %lld %.*s\n", static_cast<unsigned long long>(steps_),
                static_cast<long long>(now_ns()), static_cast<int>(line.size()), line.data());
  }
}

void Run::Fail(Check check, const std::string& what) {
  if (failed() || options_.off.contains(check)) return;
  failure_ = absl::StrCat(NameOf(check), " does not hold in seed ", options_.seed, ", step ",
                          steps_, ", at ", now_ns(), " ns: ", what);
  Note(failure_);
}

}  // namespace gannet::simulation
