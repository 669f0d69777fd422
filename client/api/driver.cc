#include "client/api/driver.h"

#include <algorithm>
#include <chrono>

#include "client/api/requests.h"

namespace gannet {
namespace {

// The keep-alive thread looks at least so often, and while calls wait at most so often.
constexpr int64_t kKeepAliveNsMax = kNsPerSecond;
constexpr int64_t kKeepAliveNsMin = 20 * kNsPerMs;
constexpr int64_t kLetInNs = 20 * kNsPerUs;    // for others to take the mutex
constexpr int64_t kNoRoomNs = 100 * kNsPerUs;  // until operations of others are over

}  // namespace

Driver::Driver(std::unique_ptr<Engine> engine, std::unique_ptr<WakeFd> wake, const Options& options)
    : engine_(std::move(engine)),
      wake_(std::move(wake)),
      clock_(engine_->clock()),
      polls_only_(options.wait == gannet::Wait::kPoll),
      stages_(StagesOf(options)),
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
  // Posts them, whoever drives. READs that complete within their post are not waited for.
  do {
    PollAndDeliver(clock_.MonotonicNs());
  } while (waiter.remaining > 0 && engine_->progressed());
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
    if (ops[n] == kNoOp) break;
    waiter_of_op_[ops[n]] = waiter;
  }
  waiter->remaining = static_cast<uint32_t>(n);
  return n;
}

Op Driver::TooLate(const OpRequest& request) {
  MutexLock lock(mutex_);
  Op op;
  op.request = request;
  if (!request.key.empty()) op.request.server = engine_->ServerOf(request.key);
  op.outcome = engine_->LateOutcome(op.request.server);
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
  // Whoever was told to drive and has no more need of it passes it on.
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
  // What is left to do when the last caller goes may be due sooner than the keep-alive thread
  // knows.
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

// Another thread polled while one sleeps. The device wakes the sleeper for what it has, the timer
// for what was due when it went to sleep. This is for everything else: the driver has nothing to
// wait for any more, there are other descriptors, or something is due sooner.
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
  for (uint32_t i = engine_->NextFinished(); i != kNoOp; i = engine_->NextFinished()) {
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
  lock.release();  // still locked, by the caller
}

// A polling thread that unlocks and locks again would starve those that sleep on the mutex. It
// gives them the time to wake up on another core; or the core, if that is what they wait for.
void Driver::LetOthersIn() {
  if (entering_.load(std::memory_order_relaxed) == 0) return;
  mutex_.Unlock();
  const int64_t until_ns = MonotonicNs() + kLetInNs;
  do {
    std::this_thread::yield();
  } while (entering_.load(std::memory_order_relaxed) > 0 && MonotonicNs() < until_ns);
  mutex_.Lock();
}

// While nobody drives. It sleeps on the descriptors only where they have to be listened to; when
// all is quiet, the answer to a heartbeat need not wake it.
void Driver::KeepAlive() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const int64_t now_ns = clock_.MonotonicNs();
    if (driver_ == nullptr) PollAndDeliver(now_ns);
    if (driver_ == nullptr && engine_->in_motion()) {
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
  return engine_->Info();
}

absl::Status Driver::StatusOf(const Op& op) {
  if (op.outcome == Outcome::kOk) return absl::OkStatus();
  MutexLock lock(mutex_);
  return gannet::StatusOf(*engine_, op);
}

}  // namespace gannet
