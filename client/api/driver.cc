// How threads share one engine. At most one of them drives: it polls and sleeps for all, and when
// it has its own answers it chooses the next one. The others sleep on a condition variable each.
// The keep-alive thread polls while nobody drives. All state is under one mutex, which a driver
// that polls gives away as soon as somebody wants in (entering_).

#include "client/api/driver.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/api/make_requests.h"
#include "client/engine/op_fate.h"

namespace gannet {
namespace {

// The longest pause of the keep-alive thread, and its shortest one while calls wait.
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
      has_near_cache_(options.near_cache_bytes > 0),
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

size_t Driver::BeginAndWait(std::span<const OpRequest> requests, int64_t called_ns, Begun* begun,
                            Waiter* waiter, size_t* ended) {
  entering_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  entering_.fetch_sub(1, std::memory_order_relaxed);
  const int64_t deadline_ns = called_ns + requests[0].timeout_ns;
  int64_t now_ns = clock_.MonotonicNs();
  size_t n = BeginSome(requests, now_ns - called_ns, begun, waiter);
  while (n == 0) {
    if (now_ns >= deadline_ns) return 0;
    PollAndDeliver(now_ns);
    WakeSleeper();
    WaitFor(&waiter->wake, kNoRoomNs);
    now_ns = clock_.MonotonicNs();
    n = BeginSome(requests, now_ns - called_ns, begun, waiter);
  }
  // Posts them, even if another thread drives. The time was read within the call and under the
  // mutex, so it will do for answers from copies. READs that complete while they are posted need no
  // wait.
  PollAndDeliver(now_ns);
  while (!waiter->batch.HasToTake(*engine_) && ServerEvents(engine_->servers()).progressed()) {
    PollAndDeliver(clock_.MonotonicNs());
  }
  WakeSleeper();
  *ended = WaitForSome({begun, n}, waiter);
  return n;
}

size_t Driver::BeginSome(std::span<const OpRequest> requests, int64_t passed_ns, Begun* begun,
                         Waiter* waiter) {
  uint32_t n = 0;
  for (; n < requests.size(); ++n) {
    OpRequest request = requests[n];
    request.timeout_ns = std::max<int64_t>(request.timeout_ns - passed_ns, 0);
    const uint32_t op = engine_->Begin(request);
    if (op == kInvalidOp) break;
    begun[n] = {op, n};
    waiter_of_op_[op] = waiter;
  }
  waiter->batch.Begin(n);
  return n;
}

size_t Driver::WaitForSome(std::span<Begun> left, Waiter* waiter) {
  Wait(waiter);
  waiter->batch.OnTaken();
  if (waiter->batch.over()) return left.size();
  const auto has_ended = [this](const Begun& it)
                             GANNET_REQUIRES(mutex_) { return waiter_of_op_[it.op] == nullptr; };
  return static_cast<size_t>(std::partition(left.begin(), left.end(), has_ended) - left.begin());
}

Op Driver::MakeLateOp(const OpRequest& request) {
  MutexLock lock(mutex_);
  Op op;
  op.request = request;
  const ServerSet& servers = engine_->servers();
  if (!request.key.empty() && servers.routing_status().ok())
    op.request.server = servers.ServerOf(request.key);
  op.outcome = LateOutcome(ReachOf(servers.session(op.request.server)));
  return op;
}

size_t Driver::ReleaseAndWait(std::span<const Begun> taken, std::span<Begun> left, Waiter* waiter) {
  entering_.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  entering_.fetch_sub(1, std::memory_order_relaxed);
  for (const Begun& it : taken) engine_->Release(it.op);
  if (sleepers_ > 0 && engine_->wants_buffer()) wake_->Kick();
  return left.empty() ? 0 : WaitForSome(left, waiter);
}

void Driver::Wait(Waiter* waiter) {
  while (!waiter->batch.HasToTake(*engine_)) {
    if (driver_ == nullptr) {
      Drive(waiter);
    } else {
      waiter->chosen = false;
      waiting_.push_back(waiter);
      while (!waiter->batch.HasToTake(*engine_) && !waiter->chosen) {
        WaitFor(&waiter->wake, INT64_MAX);
      }
      std::erase(waiting_, waiter);
    }
  }
  // A thread may be chosen to drive when it is done already. It passes that on.
  if (waiter->chosen && driver_ == nullptr) ChooseNextDriver();
}

void Driver::Drive(Waiter* waiter) {
  driver_ = waiter;
  waiter->chosen = false;
  while (!waiter->batch.HasToTake(*engine_)) {
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
  const bool due = wake_->Arm(*engine_, clock_.MonotonicNs());
  Deliver();
  if (due || (driver_ != nullptr && driver_->batch.HasToTake(*engine_))) return;
  const int fd = wake_->fd();
  ++sleepers_;
  mutex_.Unlock();
  WakeFd::Sleep(fd, INT64_MAX);
  mutex_.Lock();
  --sleepers_;
}

// Call it when this thread polled while another one sleeps. The device wakes the sleeper when it
// has something, and the timer wakes it for what was due. This wakes it for the rest: the driver
// has operations to take, the descriptors changed, or something is due sooner.
void Driver::WakeSleeper() {
  if (sleepers_ == 0) return;
  const bool done = driver_ != nullptr && driver_->batch.HasToTake(*engine_);
  if (done || !wake_->Covers(*engine_, clock_.MonotonicNs())) wake_->Kick();
}

void Driver::PollAndDeliver(int64_t now_ns) {
  engine_->Poll(now_ns);
  Deliver();
}

void Driver::Deliver() {
  for (uint32_t i = engine_->NextFinished(); i != kInvalidOp; i = engine_->NextFinished()) {
    Waiter* waiter = std::exchange(waiter_of_op_[i], nullptr);
    waiter->batch.OnEnded();
    if (waiter->batch.over()) waiter->wake.notify_one();
  }
  if (!waiting_.empty() && engine_->wants_buffer()) WakeHolders();
}

// An operation waits for a buffer. Wakes the threads that may hold one.
void Driver::WakeHolders() {
  for (Waiter* waiter : waiting_) {
    if (waiter->batch.has_ended()) waiter->wake.notify_one();
  }
}

void Driver::ChooseNextDriver() {
  const auto needs_more = [](const Waiter* waiter) { return !waiter->batch.over(); };
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
    if (driver_ == nullptr && ServerEvents(engine_->servers()).in_motion()) {
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

ServerInfo Driver::InfoOf(uint32_t server) {
  std::vector<ServerInfo> infos = Info();
  return server < infos.size() ? std::move(infos[server]) : ServerInfo{};
}

absl::Status Driver::MakeStatus(const Op& op) {
  if (op.outcome == Outcome::kOk) return absl::OkStatus();
  MutexLock lock(mutex_);
  return gannet::MakeStatus(*engine_, op);
}

}  // namespace gannet
