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
  std::unique_ptr<Worker> worker;
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

class Phase {
 public:
  Phase(const PhasePlan& plan, const Environment& environment)
      : plan_(plan),
        environment_(environment),
        values_(plan.worker.value_bytes_max, plan.seed),
        parts_(plan.threads) {}

  absl::StatusOr<PhaseResult> Run();

 private:
  enum class State : int { kConnecting, kRunning, kEnding };

  void ThreadMain(uint32_t thread);
  void WarmUp(uint32_t thread, Backend& backend) const;
  // Relaxed: nothing is published with it.
  bool Interrupted() const {
    return environment_.interrupted != nullptr &&
           environment_.interrupted->load(std::memory_order_relaxed);
  }
  bool Over() const { return time_is_up_.load(std::memory_order_relaxed) || Interrupted(); }
  void Arrive();
  void WaitForAll(bool with_progress);
  // Returns when the first operation is due. FailedPrecondition: that time has passed.
  absl::StatusOr<int64_t> BeginNs() const;
  void ShowProgress();
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
  Worker::Options OptionsOf(uint32_t thread) const;

  const PhasePlan& plan_;
  const Environment& environment_;
  const ValueMaker values_;
  std::vector<Part> parts_;
  int64_t begin_ns_ = 0;                 // written before the state is kRunning
  std::atomic<bool> time_is_up_{false};  // relaxed: nothing is published with it
  uint64_t shown_ = 0;                   // operations ended at the last progress line

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable goes_on_;
  // Guarded by mutex_.
  uint32_t arrivals_ = 0;
  State state_ = State::kConnecting;
};

void Phase::Arrive() {
  const std::lock_guard lock(mutex_);
  ++arrivals_;
  arrived_.notify_one();
}

void Phase::WaitForAll(bool with_progress) {
  std::unique_lock lock(mutex_);
  const auto all = [this] { return arrivals_ == plan_.threads; };
  const bool timed = with_progress && plan_.seconds > 0;
  const int64_t end_ns = timed ? begin_ns_ + static_cast<int64_t>(plan_.seconds * kNsPerSecond)
                               : std::numeric_limits<int64_t>::max();
  int64_t show_ns = MonotonicNs() + kProgressNs;
  for (;;) {
    const bool over = time_is_up_.load(std::memory_order_relaxed);
    const int64_t until_ns = over ? show_ns : std::min(show_ns, end_ns);
    const std::chrono::nanoseconds left(std::max<int64_t>(0, until_ns - MonotonicNs()));
    if (arrived_.wait_for(lock, left, all)) break;
    const int64_t now = MonotonicNs();
    if (now >= end_ns) time_is_up_.store(true, std::memory_order_relaxed);
    if (now < show_ns) continue;
    show_ns = now + kProgressNs;
    if (with_progress) ShowProgress();
  }
  arrivals_ = 0;
}

void Phase::ShowProgress() {
  if (!environment_.progress) return;
  uint64_t done = 0;
  for (const Part& part : parts_) done += part.worker->finished();
  const std::string rate = absl::StrFormat("%d operations/s", done - shown_);
  if (plan_.seconds > 0) {
    environment_.progress(absl::StrCat(plan_.name, ": ", rate));
  } else {
    environment_.progress(absl::StrFormat(
        "%s: %d %% of %d, %s", plan_.name,
        plan_.operations == 0 ? 100 : done * 100 / plan_.operations, plan_.operations, rate));
  }
  shown_ = done;
}

Worker::Options Phase::OptionsOf(uint32_t thread) const {
  Worker::Options options = plan_.worker;
  options.thread = thread;
  options.interval_ns = plan_.target_ops == 0
                            ? 0
                            : std::max<int64_t>(1, kNsPerSecond * plan_.threads / plan_.target_ops);
  return options;
}

Phase::State Phase::PollWhile(State state, Backend& backend) {
  std::unique_lock lock(mutex_);
  while (!goes_on_.wait_for(lock, kWaitStep, [&] { return state_ != state; })) {
    lock.unlock();
    Completion none;
    backend.Poll({&none, 1});
    lock.lock();
  }
  return state_;
}

void Phase::AwaitBegin(Backend& backend) const {
  Completion none;
  for (;;) {
    const int64_t left_ns = begin_ns_ - MonotonicNs();
    if (left_ns <= 0) return;
    backend.Poll({&none, 1});
    const std::chrono::nanoseconds left(left_ns);
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, kWaitStep));
  }
}

void Phase::WarmUp(uint32_t thread, Backend& backend) const {
  Worker::Options options = OptionsOf(thread);
  options.interval_ns = 0;
  const std::unique_ptr<OperationSource> source = plan_.warm_up(thread);
  Worker worker(options, backend, *source, values_, &MonotonicNs);
  while (worker.Poll()) {
    if (Interrupted()) worker.Stop();
  }
}

void Phase::ThreadMain(uint32_t thread) {
  if (plan_.worker.shares_core) AskForTurns(Turn::kTurnNs);
  Part& part = parts_[thread];
  auto backend = environment_.connect(thread);
  part.connected = backend.status();
  if (!backend.ok()) {
    Arrive();
    return;
  }
  const std::unique_ptr<OperationSource> source = plan_.source(thread);
  part.worker =
      std::make_unique<Worker>(OptionsOf(thread), **backend, *source, values_, &MonotonicNs);
  if (plan_.warm_up) WarmUp(thread, **backend);
  Arrive();
  if (PollWhile(State::kConnecting, **backend) == State::kEnding) return;  // another failed

  // In an open loop the threads start their operations in turn.
  const int64_t turn =
      plan_.target_ops == 0 ? 0 : static_cast<int64_t>(kNsPerSecond * thread / plan_.target_ops);
  part.worker->Begin(begin_ns_ + turn);
  AwaitBegin(**backend);
  while (part.worker->Poll()) {
    if (Over()) [[unlikely]]
      part.worker->Stop();
  }
  part.ended_ns = part.worker->End();
  part.spread = (*backend)->spread();
  Arrive();
  PollWhile(State::kRunning, **backend);
}

absl::StatusOr<int64_t> Phase::BeginNs() const {
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

absl::StatusOr<PhaseResult> Phase::Measure() {
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
    result.metrics.Merge(part.worker->metrics());
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
  if (after.ok()) result.after = *after;
  return result;
}

absl::StatusOr<PhaseResult> Phase::Run() {
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
  return Phase(plan, environment).Run();
}

}  // namespace gannet::kvload
