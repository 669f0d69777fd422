#include "softverbs/nic/epoll_loop.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/mutex.h"

namespace softverbs {
namespace {

// Ids 1 and 2 are the loop's own descriptors.
constexpr uint64_t kWakeId = 1;
constexpr uint64_t kTimerId = 2;
constexpr int kMaxEvents = 64;

std::atomic<Loop*> the_loop{nullptr};
Mutex* start_mutex = new Mutex;  // replaced in a forked child, where it may be held

void ForgetLoop() {
  the_loop.store(nullptr, std::memory_order_relaxed);
  // Allocation in a fork handler is safe with glibc, whose malloc is usable in the child.
  start_mutex = new Mutex;
}

// The loop's thread runs until the process ends, so its code must stay. A program may open this
// library, or one that is linked with it, with dlopen, and close it.
void KeepThisLibrary() {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&KeepThisLibrary), &self) == 0) return;
  dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

Loop* StartLoop() {
  // Before the lock: who opens the device in a library's constructor has the dynamic linker's lock.
  KeepThisLibrary();
  const LockGuard guard(*start_mutex);
  if (Loop* loop = the_loop.load(std::memory_order_acquire)) return loop;
  static const bool registered = [] {
    OnForkChild(ForgetLoop);
    return true;
  }();
  (void)registered;
  auto loop = std::make_unique<EpollLoop>();
  if (!loop->valid()) {
    errno = EMFILE;
    return nullptr;
  }
  loop->StartThread();
  the_loop.store(loop.get(), std::memory_order_release);
  return loop.release();  // never destroyed: its thread runs until the process ends
}

// The kernel's struct sched_attr. Its header cannot be included together with the C library's
// <sched.h>.
struct SchedulingAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;
};
static_assert(sizeof(SchedulingAttributes) == 48);

// Asks the scheduler for short time slices that begin soon. Otherwise, if an application spins on
// every core, this thread would wait milliseconds each time until a slice ends. Kernels before 6.12
// do not support this for ordinary threads, and ignore it.
void AskForShortTurns() {
  constexpr uint64_t kTurnNs = 100'000;  // the minimum that the kernel accepts
  SchedulingAttributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  attributes.runtime = kTurnNs;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void DrainCounter(int fd) {
  uint64_t value;
  while (read(fd, &value, sizeof(value)) < 0 && errno == EINTR) {
  }
}

}  // namespace

bool Loop::Start() {
  return the_loop.load(std::memory_order_acquire) != nullptr || StartLoop() != nullptr;
}

Loop& Loop::Get() {
  // Acquire pairs with the release in StartLoop: the object is complete.
  if (Loop* loop = the_loop.load(std::memory_order_acquire)) return *loop;
  Loop* loop = StartLoop();
  if (loop == nullptr) abort();
  return *loop;
}

bool Loop::Install(Loop* loop) {
  const LockGuard guard(*start_mutex);
  Loop* current = the_loop.load(std::memory_order_acquire);
  if (current == nullptr) the_loop.store(loop, std::memory_order_release);
  return current == nullptr || current == loop;
}

EpollLoop::EpollLoop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!valid()) return;
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeId}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  event.data.u64 = kTimerId;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &event);
}

void EpollLoop::StartThread() {
  // The application's signal handlers must run on the application's own threads.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  mutex_.lock();  // Run waits for it
  std::thread thread([this] { Run(); });
  thread_id_ = thread.get_id();
  mutex_.unlock();
  pthread_setname_np(thread.native_handle(), "softverbs");
  thread.detach();
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

bool EpollLoop::OnLoopThread() const { return std::this_thread::get_id() == thread_id_; }

Loop::Watch EpollLoop::Add(int fd, uint32_t epoll_events, Handler handler) {
  const LockGuard guard(mutex_);
  const Watch watch = ++last_id_;
  watches_.emplace(watch, Watched{fd, std::make_shared<Handler>(std::move(handler))});
  epoll_event event{.events = epoll_events, .data = {.u64 = watch}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  return watch;
}

void EpollLoop::Modify(Watch watch, uint32_t epoll_events) {
  const LockGuard guard(mutex_);
  const auto found = watches_.find(watch);
  if (found == watches_.end()) return;
  epoll_event event{.events = epoll_events, .data = {.u64 = watch}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second.fd, &event);
}

void EpollLoop::Remove(Watch watch) {
  std::shared_ptr<Handler> doomed;  // destroyed after the lock: it may own objects that call us
  const LockGuard guard(mutex_);
  auto found = watches_.find(watch);
  if (found != watches_.end()) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
    doomed = std::move(found->second.handler);
    watches_.erase(found);
  }
  WaitWhileRunning(watch);
}

Loop::Timer EpollLoop::RunAt(int64_t monotonic_ns, std::function<void()> fn) {
  const LockGuard guard(mutex_);
  const Timer timer = ++last_id_;
  timers_.emplace(Deadline{monotonic_ns, timer}, std::move(fn));
  deadlines_.emplace(timer, monotonic_ns);
  if (timers_.begin()->first.second == timer) ArmTimerFd();
  return timer;
}

void EpollLoop::Cancel(Timer timer) {
  std::function<void()> doomed;
  const LockGuard guard(mutex_);
  auto found = deadlines_.find(timer);
  if (found != deadlines_.end()) {
    auto entry = timers_.find(Deadline{found->second, timer});
    doomed = std::move(entry->second);
    timers_.erase(entry);
    deadlines_.erase(found);
  }
  WaitWhileRunning(timer);
}

void EpollLoop::Post(std::function<void()> fn) {
  {
    const LockGuard guard(mutex_);
    posted_.push_back(std::move(fn));
    if (posted_.size() > 1) return;  // the first Post woke the thread
  }
  const uint64_t one = 1;
  while (write(wake_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void EpollLoop::Run() {
  { const LockGuard wait_for_start(mutex_); }
  AskForShortTurns();
  epoll_event events[kMaxEvents];
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events, kMaxEvents, -1);
    for (int i = 0; i < count; ++i) Dispatch(events[i].data.u64, events[i].events);
  }
}

void EpollLoop::Dispatch(Watch watch, uint32_t events) {
  if (watch == kWakeId) return RunPosted();
  if (watch == kTimerId) return RunTimers();
  const LockGuard guard(mutex_);
  auto found = watches_.find(watch);
  if (found == watches_.end()) return;  // removed after epoll_wait had returned it
  std::shared_ptr<Handler> handler = found->second.handler;
  RunMarked(watch, [&] {
    (*handler)(events);
    handler.reset();
  });
}

template <class Fn>
void EpollLoop::RunMarked(uint64_t id, Fn&& fn) {
  running_ = id;
  mutex_.unlock();
  fn();
  mutex_.lock();
  running_ = 0;
  ran_.NotifyAll();
}

void EpollLoop::WaitWhileRunning(uint64_t id) {
  if (id == 0 || OnLoopThread()) return;  // 0 is no watch and no timer: while it runs, nothing does
  while (running_ == id) ran_.Wait(mutex_);
}

void EpollLoop::RunTimers() {
  DrainCounter(timer_.get());
  const LockGuard guard(mutex_);
  while (!timers_.empty() && timers_.begin()->first.first <= MonotonicNs()) {
    const Timer timer = timers_.begin()->first.second;
    std::function<void()> fn = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    deadlines_.erase(timer);
    RunMarked(timer, [&] {
      fn();
      fn = nullptr;
    });
  }
  ArmTimerFd();
}

void EpollLoop::RunPosted() {
  DrainCounter(wake_.get());
  std::vector<std::function<void()>> batch;
  {
    const LockGuard guard(mutex_);
    batch.swap(posted_);
  }
  for (auto& fn : batch) fn();
}

void EpollLoop::ArmTimerFd() {
  itimerspec spec{};
  if (!timers_.empty()) {
    const int64_t deadline = timers_.begin()->first.first;
    spec.it_value.tv_sec = deadline / 1'000'000'000;
    spec.it_value.tv_nsec = deadline % 1'000'000'000;
    if (deadline <= 0) spec.it_value = {0, 1};  // zero would disarm it
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
}

}  // namespace softverbs
