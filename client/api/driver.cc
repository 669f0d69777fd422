#include "client/api/driver.h"

#include <algorithm>
#include <chrono>

#include "client/api/requests.h"

namespace gannet {
namespace {

// A round trip takes a few microseconds, waking a sleeping thread 50: poll first.
constexpr int64_t kSpinNs = 200 * kNsPerUs;
constexpr int kSleepMs = 5;                         // deadlines are looked at so often
constexpr int64_t kKeepAliveNs = 100 * kNsPerMs;    // at most
constexpr int64_t kReconnectPollNs = 2 * kNsPerMs;  // while a server is being connected to
constexpr int64_t kNoRoomNs = 100 * kNsPerUs;       // until operations of others are over

}  // namespace

Driver::Driver(std::unique_ptr<Engine> engine)
    : engine_(std::move(engine)),
      clock_(engine_->clock()),
      waiter_of_op_(engine_->slots()),
      keep_alive_([this] { KeepAlive(); }) {}

Driver::~Driver() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
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
    WaitFor(&waiter.wake, kNoRoomNs);
    n = BeginSome(requests, called_ns, ops, &waiter);
  }
  PollAndDeliver(clock_.MonotonicNs());  // posts them, whoever drives
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
}

void Driver::Wait(Waiter* waiter) {
  while (waiter->remaining > 0) {
    if (!driving_) {
      Drive(waiter);
    } else {
      waiter->chosen = false;
      waiting_.push_back(waiter);
      while (waiter->remaining > 0 && !waiter->chosen) WaitFor(&waiter->wake, INT64_MAX);
      std::erase(waiting_, waiter);
    }
  }
  // Whoever was told to drive and has no more need of it passes it on.
  if (waiter->chosen && !driving_) ChooseNextDriver();
}

void Driver::Drive(Waiter* waiter) {
  driving_ = true;
  waiter->chosen = false;
  int64_t now_ns = clock_.MonotonicNs();
  const int64_t spin_until_ns = now_ns + kSpinNs;
  while (waiter->remaining > 0) {
    if (now_ns >= spin_until_ns) SleepOnDevice();
    LetOthersIn();
    now_ns = clock_.MonotonicNs();
    PollAndDeliver(now_ns);
  }
  driving_ = false;
  ChooseNextDriver();
}

// Completions that came before Arm wake nobody, so it polls once more before it sleeps.
void Driver::SleepOnDevice() {
  engine_->Arm();
  PollAndDeliver(clock_.MonotonicNs());
  if (engine_->HasFinished()) return;
  fds_.clear();
  engine_->AppendFds(&fds_);
  std::vector<pollfd> fds;
  fds.swap(fds_);
  mutex_.Unlock();
  poll(fds.data(), fds.size(), kSleepMs);
  mutex_.Lock();
  fds_.swap(fds);
}

void Driver::PollAndDeliver(int64_t now_ns) {
  engine_->Poll(now_ns);
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

// A spinning thread that unlocks and locks again would starve those that sleep on the mutex.
void Driver::LetOthersIn() {
  constexpr int kYieldsMax = 64;
  if (entering_.load(std::memory_order_relaxed) == 0) return;
  mutex_.Unlock();
  for (int i = 0; i < kYieldsMax && entering_.load(std::memory_order_relaxed) > 0; ++i) {
    std::this_thread::yield();
  }
  mutex_.Lock();
}

void Driver::KeepAlive() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    const int64_t now_ns = clock_.MonotonicNs();
    if (!driving_) PollAndDeliver(now_ns);
    const int64_t idle_ns = std::min(engine_->IdleNs(now_ns), engine_->IdlePollNs());
    WaitFor(&stop_, std::clamp(idle_ns, kReconnectPollNs, kKeepAliveNs));
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
