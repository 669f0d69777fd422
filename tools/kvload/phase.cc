#include "tools/kvload/phase.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/base/short_turns.h"
#include "common/base/status_macros.h"

namespace gannet::kvload {
namespace {

constexpr int64_t kProgressNs = kNsPerSecond;
// How often a thread that waits for the others keeps its connection alive.
constexpr std::chrono::milliseconds kWaitStep{50};
// Time between the signal to start and the first operation, so that every thread has woken up.
constexpr int64_t kHeadStartNs = 5 * kNsPerMs;

// One thread's part of the phase. The thread writes it before it arrives at a gate (Arrive). The
// main thread reads it after that gate (WaitForAll).
struct Part {
  absl::Status connected;
  std::unique_ptr<OperationLoop> loop;
  int64_t ended_ns = 0;
  Spread spread;
};

// Returns the CPU time that this process has used.
uint64_t ProcessCpuUs() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return (static_cast<uint64_t>(used.tv_sec) * kNsPerSecond + static_cast<uint64_t>(used.tv_nsec)) /
         1000;
}

class PhaseRun {
 public:
  PhaseRun(const PhasePlan& plan, const Environment& environment)
      : plan_(plan),
        environment_(environment),
        values_(plan.loop.value_bytes_max, plan.seed),
        parts_(plan.threads),
        warm_rate_(plan.rate.closed_loop() ? Rate() : Rate(plan.rate.At(0))) {}

  absl::StatusOr<PhaseResult> Run();

 private:
  enum class State : int { kConnecting, kRunning, kEnding };

  void ThreadMain(uint32_t thread);
  void WarmUp(uint32_t thread, Backend& backend) const;
  void WarmUpWith(const OperationLoop::Options& options, OperationSource& source, int64_t until_ns,
                  Backend& backend) const;
  // Relaxed: nothing is published with it.
  bool Interrupted() const {
    return environment_.interrupted != nullptr &&
           environment_.interrupted->load(std::memory_order_relaxed);
  }
  bool Over() const { return time_is_up_.load(std::memory_order_relaxed) || Interrupted(); }
  void Arrive();
  // Waits until all threads have arrived. While they are running, ends the phase when its time is
  // up, and shows progress.
  void WaitForAll(bool running);
  double SecondsAt(int64_t now_ns) const {
    return static_cast<double>(now_ns - begin_ns_) / kNsPerSecond;
  }
  // Returns when the first operation is due. FailedPrecondition: that time has passed.
  absl::StatusOr<int64_t> BeginNs() const;
  bool Watched() const { return environment_.progress || environment_.each_second; }
  ProgressMeter MeterOf() const;
  // Tells the caller of the phase what happened since the last time.
  void Show(ProgressMeter& meter, int64_t now_ns);
  absl::StatusOr<PhaseResult> Measure();
  void SetState(State state) {
    {
      const std::lock_guard lock(mutex_);
      state_ = state;
    }
    goes_on_.notify_all();
  }
  // Waits until the first operation is due.
  void AwaitBegin(Backend& backend) const;
  // Keeps a backend's connection alive while the phase is in `state`. Returns the next state.
  State PollWhile(State state, Backend& backend);
  OperationLoop::Options OptionsOf(uint32_t thread) const;

  const PhasePlan& plan_;
  const Environment& environment_;
  const ValueMaker values_;
  std::vector<Part> parts_;
  int64_t begin_ns_ = 0;                 // written before the state is kRunning
  std::atomic<bool> time_is_up_{false};  // relaxed: nothing is published with it
  const Rate warm_rate_;                 // that the phase begins with

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable goes_on_;
  // Guarded by mutex_.
  uint32_t arrivals_ = 0;
  State state_ = State::kConnecting;
};

void PhaseRun::Arrive() {
  const std::lock_guard lock(mutex_);
  ++arrivals_;
  arrived_.notify_one();
}

void PhaseRun::WaitForAll(bool running) {
  std::unique_lock lock(mutex_);
  const auto all = [this] { return arrivals_ == plan_.threads; };
  ProgressMeter meter = running && Watched() ? MeterOf() : ProgressMeter({});
  const bool timed = running && plan_.seconds > 0;
  const int64_t end_ns = timed ? begin_ns_ + static_cast<int64_t>(plan_.seconds * kNsPerSecond)
                               : std::numeric_limits<int64_t>::max();
  int64_t show_ns = (running ? begin_ns_ : MonotonicNs()) + kProgressNs;
  for (;;) {
    const bool over = time_is_up_.load(std::memory_order_relaxed);
    const int64_t until_ns = over ? show_ns : std::min(show_ns, end_ns);
    const std::chrono::nanoseconds left(std::max<int64_t>(0, until_ns - MonotonicNs()));
    if (arrived_.wait_for(lock, left, all)) break;
    const int64_t now = MonotonicNs();
    if (now >= end_ns) time_is_up_.store(true, std::memory_order_relaxed);
    if (now < show_ns) continue;
    while (show_ns <= now) show_ns += kProgressNs;
    if (running && Watched()) Show(meter, now);
  }
  arrivals_ = 0;
  if (running && environment_.each_second) {
    environment_.each_second(plan_.name, meter.Look(SecondsAt(MonotonicNs())));
  }
}

ProgressMeter PhaseRun::MeterOf() const {
  std::vector<const Metrics*> metrics;
  for (const Part& part : parts_) metrics.push_back(&part.loop->metrics());
  return ProgressMeter(std::move(metrics));
}

void PhaseRun::Show(ProgressMeter& meter, int64_t now_ns) {
  const Interval interval = meter.Look(SecondsAt(now_ns));
  if (environment_.each_second) environment_.each_second(plan_.name, interval);
  if (!environment_.progress) return;
  ProgressState state{
      .phase = plan_.name, .operations = plan_.operations, .seconds = plan_.seconds};
  for (const Part& part : parts_) state.finished += part.loop->finished();
  environment_.progress(ProgressLine(state, interval));
}

OperationLoop::Options PhaseRun::OptionsOf(uint32_t thread) const {
  OperationLoop::Options options = plan_.loop;
  options.thread = thread;
  options.threads = plan_.threads;
  options.rate = plan_.rate.closed_loop() ? nullptr : &plan_.rate;
  return options;
}

PhaseRun::State PhaseRun::PollWhile(State state, Backend& backend) {
  std::unique_lock lock(mutex_);
  while (!goes_on_.wait_for(lock, kWaitStep, [&] { return state_ != state; })) {
    lock.unlock();
    Completion none;
    backend.Poll({&none, 1});
    lock.lock();
  }
  return state_;
}

void PhaseRun::AwaitBegin(Backend& backend) const {
  Completion none;
  for (;;) {
    const int64_t left_ns = begin_ns_ - MonotonicNs();
    if (left_ns <= 0) return;
    backend.Poll({&none, 1});
    const std::chrono::nanoseconds left(left_ns);
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kWaitStep));
  }
}

void PhaseRun::WarmUpWith(const OperationLoop::Options& options, OperationSource& source,
                          int64_t until_ns, Backend& backend) const {
  OperationLoop loop(options, backend, source, values_, &MonotonicNs);
  loop.Begin(MonotonicNs());
  while (loop.Poll()) {
    if (Interrupted() || MonotonicNs() >= until_ns) loop.Stop();
  }
}

void PhaseRun::WarmUp(uint32_t thread, Backend& backend) const {
  OperationLoop::Options options = OptionsOf(thread);
  options.rate = nullptr;
  if (plan_.warm_up) {
    WarmUpWith(options, *plan_.warm_up(thread), std::numeric_limits<int64_t>::max(), backend);
  }
  if (plan_.warm_seconds == 0) return;
  if (!warm_rate_.closed_loop()) options.rate = &warm_rate_;
  const auto ns = static_cast<int64_t>(plan_.warm_seconds * kNsPerSecond);
  WarmUpWith(options, *plan_.warm_load(thread), MonotonicNs() + ns, backend);
}

void PhaseRun::ThreadMain(uint32_t thread) {
  if (plan_.loop.shares_core) AskForTurns(Turn::kTurnNs);
  Part& part = parts_[thread];
  auto backend = environment_.connect(thread);
  part.connected = backend.status();
  if (!backend.ok()) {
    Arrive();
    return;
  }
  const std::unique_ptr<OperationSource> source = plan_.source(thread);
  part.loop =
      std::make_unique<OperationLoop>(OptionsOf(thread), **backend, *source, values_, &MonotonicNs);
  WarmUp(thread, **backend);
  Arrive();
  if (PollWhile(State::kConnecting, **backend) == State::kEnding) return;  // another failed

  // In an open loop the threads start their operations in turn.
  const int64_t turn = plan_.rate.closed_loop() || thread == 0
                           ? 0
                           : plan_.rate.IntervalNs(0, plan_.threads) * thread / plan_.threads;
  part.loop->Begin(begin_ns_ + turn);
  AwaitBegin(**backend);
  while (part.loop->Poll()) {
    if (Over()) [[unlikely]]
      part.loop->Stop();
  }
  part.ended_ns = part.loop->End();
  part.spread = (*backend)->spread();
  Arrive();
  PollWhile(State::kRunning, **backend);
}

absl::StatusOr<int64_t> PhaseRun::BeginNs() const {
  const int64_t now = MonotonicNs();
  if (plan_.start_at == 0) return now + kHeadStartNs;
  const int64_t left_ns = static_cast<int64_t>(plan_.start_at * kNsPerSecond) - WallNs();
  if (left_ns < kHeadStartNs) {
    return absl::FailedPreconditionError(
        absl::StrFormat("--start_at: that time had passed %.3f s before all threads were connected",
                        static_cast<double>(kHeadStartNs - left_ns) / kNsPerSecond));
  }
  return now + left_ns;
}

absl::StatusOr<PhaseResult> PhaseRun::Measure() {
  WaitForAll(false);
  for (const Part& part : parts_) GANNET_RETURN_IF_ERROR(part.connected);
  PhaseResult result;
  GANNET_ASSIGN_OR_RETURN(result.before, environment_.totals());
  GANNET_ASSIGN_OR_RETURN(begin_ns_, BeginNs());
  const uint64_t cpu_before_us = ProcessCpuUs();
  SetState(State::kRunning);
  WaitForAll(true);
  result.client_cpu_us = ProcessCpuUs() - cpu_before_us;
  int64_t ended_ns = begin_ns_;
  for (const Part& part : parts_) {
    result.metrics.Merge(part.loop->metrics());
    ended_ns = std::max(ended_ns, part.ended_ns);
  }
  result.spread = parts_.front().spread;
  const int64_t dead_ns = result.metrics.dead_ns;
  result.dead_seconds = static_cast<double>(dead_ns) / kNsPerSecond;
  result.seconds =
      static_cast<double>(std::max<int64_t>(0, ended_ns - begin_ns_ - dead_ns)) / kNsPerSecond;
  if (environment_.progress) environment_.progress("");
  result.after = result.before;
  if (!result.metrics.lost.empty()) {
    result.cut_short = absl::StrCat("the server is lost: ", result.metrics.lost);
    return result;
  }
  if (Interrupted()) result.cut_short = kInterrupted;
  // After errors the server may be gone. The result is still useful without its totals.
  auto after = environment_.totals();
  if (!after.ok() && result.metrics.errors() == 0) return after.status();
  if (!after.ok()) return result;
  // If another server of a group has taken over, that counts from 0.
  if (after->rpcs < result.before.rpcs) result.before = {};
  result.after = *after;
  return result;
}

absl::StatusOr<PhaseResult> PhaseRun::Run() {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < plan_.threads; ++i) {
    threads.emplace_back([this, i] { ThreadMain(i); });
  }
  absl::StatusOr<PhaseResult> result = Measure();
  SetState(State::kEnding);
  for (std::thread& thread : threads) thread.join();
  return result;
}

}  // namespace

absl::StatusOr<PhaseResult> RunPhase(const PhasePlan& plan, const Environment& environment) {
  return PhaseRun(plan, environment).Run();
}

}  // namespace gannet::kvload
