#include "client/api/driver.h"

#include <algorithm>
#include <chrono>

#include "client/api/requests.h"

namespace gannet {
namespace {

// The longest time between two looks of the keep-alive thread, and the shortest while calls wait.
constexpr int64_t kKeepAliveNsMax = kNsPerSecond;
constexpr int64_t kKeepAliveNsMin = 20 * kNsPerMs;
constexpr int64_t kLetInNs = 20 * kNsPerUs;    // how long others get to take the mutex
constexpr int64_t kNoRoomNs = 100 * kNsPerUs;  // how long to wait for operations of others to end

}  // namespace

Driver::Driver(std::unique_ptr<Engine> engine, std::unique_ptr<WakeFd> wake, const Options& options)
    : engine_(std::move(engine)),
      wake_(std::move(wake)),
      clock_(engine_->clock()),
      polls_only_(options.wait == gannet::Wait::kPoll),
      stages_(MakeWaitStages(options)),
      waiter_of_op_(engine_->slots()),
      keep_alive_([this] { KeepAlive(); }) {}

Driver::~Driver() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    wake_->Kick();
  }
  stop_.notify_one();
  keep_alive_.join();
}

size_t Driver::BeginAndWait(std::span<const OpRequest> requests, int64_t called_ns, uint32_t* ops) {
  Waiter waiter;
  entering_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  entering_.fetch_sub(1, std::memory_order_relaxed);
  const int64_t deadline_ns = called_ns + requests[0].timeout_ns;
  size_t n = BeginSome(requests, called_ns, ops, &waiter);
  while (n == 0) {
    const int64_t now_ns = clock_.MonotonicNs();
    if (now_ns >= deadline_ns) return 0;
    PollAndDeliver(now_ns);
    WakeSleeper();
    WaitFor(&waiter.wake, kNoRoomNs);
    n = BeginSome(requests, called_ns, ops, &waiter);
  }
  // Posts them, even if another thread drives. READs that complete while they are posted need no
  // wait.
  do {
    PollAndDeliver(clock_.MonotonicNs());
  } while (waiter.remaining > 0 && engine_->servers().progressed());
  WakeSleeper();
  Wait(&waiter);
  return n;
}

size_t Driver::BeginSome(std::span<const OpRequest> requests, int64_t called_ns, uint32_t* ops,
                         Waiter* waiter) {
  const int64_t passed_ns = clock_.MonotonicNs() - called_ns;
  size_t n = 0;
  for (; n < requests.size(); ++n) {
    OpRequest request = requests[n];
    request.timeout_ns = std::max<int64_t>(request.timeout_ns - passed_ns, 0);
    ops[n] = engine_->Begin(request);
    if (ops[n] == kInvalidOp) break;
    waiter_of_op_[ops[n]] = waiter;
  }
  waiter->remaining = static_cast<uint32_t>(n);
  return n;
}

Op Driver::MakeLateOp(const OpRequest& request) {
  MutexLock lock(mutex_);
  Op op;
  op.request = request;
  if (!request.key.empty()) op.request.server = engine_->servers().ServerOf(request.key);
  op.outcome = engine_->servers().LateOutcome(op.request.server);
  return op;
}

void Driver::ReleaseAll(std::span<const uint32_t> ops) {
  entering_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  entering_.fetch_sub(1, std::memory_order_relaxed);
  for (const uint32_t op : ops) engine_->Release(op);
  if (sleepers_ > 0 && engine_->wants_buffer()) wake_->Kick();
}

void Driver::Wait(Waiter* waiter) {
  while (waiter->remaining > 0) {
    if (driver_ == nullptr) {
      Drive(waiter);
    } else {
      waiter->chosen = false;
      waiting_.push_back(waiter);
      while (waiter->remaining > 0 && !waiter->chosen) WaitFor(&waiter->wake, INT64_MAX);
      std::erase(waiting_, waiter);
    }
  }
  // A thread that was told to drive, but is done already, passes that on.
  if (waiter->chosen && driver_ == nullptr) ChooseNextDriver();
}

void Driver::Drive(Waiter* waiter) {
  driver_ = waiter;
  waiter->chosen = false;
  while (waiter->remaining > 0) {
    WaitALittle();
    PollAndDeliver(clock_.MonotonicNs());
  }
  const int64_t now_ns = clock_.MonotonicNs();
  stages_.Came(now_ns);
  driver_ = nullptr;
  ChooseNextDriver();
  // When the last caller goes, something may be due sooner than the keep-alive thread knows.
  if (waiting_.empty() && engine_->IdleNs(now_ns, false) < keep_alive_ns_ - now_ns)
    stop_.notify_one();
}

void Driver::WaitALittle() {
  using Stage = WaitStages::Stage;
  switch (polls_only_ ? Stage::kPoll : stages_.Next(clock_.MonotonicNs())) {
    case Stage::kPoll:
      return LetOthersIn();
    case Stage::kYield:
      mutex_.Unlock();
      std::this_thread::yield();
      return mutex_.Lock();
    case Stage::kSleep:
      return SleepOnDevice();
  }
}

void Driver::SleepOnDevice() {
  if (wake_->Arm(*engine_, clock_.MonotonicNs())) return Deliver();
  const int fd = wake_->fd();
  ++sleepers_;
  mutex_.Unlock();
  WakeFd::Sleep(fd, INT64_MAX);
  mutex_.Lock();
  --sleepers_;
}

// Call it when this thread polled while another one sleeps. The device wakes the sleeper when it
// has something, and the timer when something is due that was known before. This wakes it for the
// rest: the driver's operations are over, the descriptors changed, or something is due sooner.
void Driver::WakeSleeper() {
  if (sleepers_ == 0) return;
  const bool done = driver_ != nullptr && driver_->remaining == 0;
  if (done || !wake_->Covers(*engine_, clock_.MonotonicNs())) wake_->Kick();
}

void Driver::PollAndDeliver(int64_t now_ns) {
  engine_->Poll(now_ns);
  Deliver();
}

void Driver::Deliver() {
  for (uint32_t i = engine_->NextFinished(); i != kInvalidOp; i = engine_->NextFinished()) {
    Waiter* waiter = waiter_of_op_[i];
    if (--waiter->remaining == 0) waiter->wake.notify_one();
  }
}

void Driver::ChooseNextDriver() {
  const auto needs_more = [](const Waiter* waiter) { return waiter->remaining > 0; };
  const auto next = std::find_if(waiting_.begin(), waiting_.end(), needs_more);
  if (next == waiting_.end()) return;
  (*next)->chosen = true;
  (*next)->wake.notify_one();
}

void Driver::WaitFor(std::condition_variable* wake, int64_t ns) {
  std::unique_lock<std::mutex> lock(mutex_.native(), std::adopt_lock);
  if (ns == INT64_MAX) {
    wake->wait(lock);
  } else {
    wake->wait_for(lock, std::chrono::nanoseconds(ns));
  }
  lock.release();  // the caller keeps it locked
}

// If a polling thread only unlocked and locked again, it would starve the threads that sleep on the
// mutex. So it gives them time to wake up on another core, or its own core.
void Driver::LetOthersIn() {
  if (entering_.load(std::memory_order_relaxed) == 0) return;
  mutex_.Unlock();
  const int64_t until_ns = MonotonicNs() + kLetInNs;
  do {
    std::this_thread::yield();
  } while (entering_.load(std::memory_order_relaxed) > 0 && MonotonicNs() < until_ns);
  mutex_.Lock();
}

// Polls while nobody drives. Sleeps on the descriptors only if a connection is in motion. Otherwise
// it sleeps until something is due: the answer to a heartbeat need not wake it.
void Driver::KeepAlive() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const int64_t now_ns = clock_.MonotonicNs();
    if (driver_ == nullptr) PollAndDeliver(now_ns);
    if (driver_ == nullptr && engine_->servers().in_motion()) {
      SleepOnDevice();
      continue;
    }
    const int64_t least_ns = driver_ == nullptr ? 0 : kKeepAliveNsMin;
    const int64_t idle_ns =
        std::clamp(engine_->IdleNs(now_ns, engine_->alive() > 0), least_ns, kKeepAliveNsMax);
    keep_alive_ns_ = now_ns + idle_ns;
    WaitFor(&stop_, idle_ns);
  }
}

std::vector<ServerInfo> Driver::Info() {
  MutexLock lock(mutex_);
  return engine_->servers().Info();
}

absl::Status Driver::MakeStatus(const Op& op) {
  if (op.outcome == Outcome::kOk) return absl::OkStatus();
  MutexLock lock(mutex_);
  return gannet::MakeStatus(*engine_, op);
}

}  // namespace gannet
