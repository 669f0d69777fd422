// The order in Arm is what loses no wake-up: events are cleared, completion queues are armed, the
// engine is polled once more, and then the timer is set. A timer that rings too early stays as it
// is: that costs one Poll in vain, and saves a system call for each operation.

#include "client/engine/wake_fd.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

constexpr uint32_t kTimer = UINT32_MAX;
constexpr uint32_t kInner = UINT32_MAX - 1;

void Add(int epoll, int fd, uint64_t data) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = data}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

timespec ToTimespec(int64_t ns) { return {ns / kNsPerSecond, ns % kNsPerSecond}; }

}  // namespace

absl::StatusOr<std::unique_ptr<WakeFd>> WakeFd::Create() {
  const int outer = epoll_create1(EPOLL_CLOEXEC);
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  std::unique_ptr<WakeFd> wake(new WakeFd(outer, timer));
  if (outer < 0 || timer < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no descriptor to sleep on: ", std::strerror(errno), "; see ulimit -n"));
  }
  Add(outer, timer, kTimer);
  return wake;
}

WakeFd::~WakeFd() {
  for (const int fd : {inner_, timer_, outer_}) {
    if (fd >= 0) close(fd);
  }
}

bool WakeFd::Arm(Engine& engine, int64_t now_ns) {
  // Servers may have other numbers than those that are watched. Then all are watched anew, below.
  if (inner_ >= 0 && ServerEvents(engine.servers()).fds_version() == fds_version_)
    TakeEvents(engine);
  // To arm costs system calls, and so does the event of an operation that need not be waited for.
  const bool expects = engine.ExpectsCompletions();
  if (expects) ServerEvents(engine.servers()).Arm();
  engine.Poll(now_ns);
  if (engine.HasFinished() || (!expects && engine.ExpectsCompletions())) return true;
  if (inner_ < 0 || ServerEvents(engine.servers()).fds_version() != fds_version_) {
    // The new descriptors were not watched when they were armed.
    Watch(engine);
    return true;
  }
  const int64_t idle_ns = engine.IdleNs(now_ns);
  if (idle_ns == 0) return true;
  SetDue(idle_ns == INT64_MAX ? INT64_MAX : now_ns + idle_ns, now_ns);
  return false;
}

bool WakeFd::Covers(const Engine& engine, int64_t now_ns) const {
  return ServerEvents(engine.servers()).fds_version() == fds_version_ &&
         engine.IdleNs(now_ns) >= due_ns_ - now_ns;
}

// Clears the events that made the descriptors readable. Polls have seen what they tell.
void WakeFd::TakeEvents(Engine& engine) {
  epoll_event events[16];
  const int n = epoll_wait(inner_, events, std::size(events), 0);
  for (int i = 0; i < n; ++i) {
    const uint64_t data = events[i].data.u64;
    ServerEvents(engine.servers())
        .OnReadable(static_cast<uint32_t>(data >> 1),
                    data % 2 == 0 ? FdKind::kConnection : FdKind::kCompletions);
  }
}

void WakeFd::Watch(const Engine& engine) {
  if (inner_ >= 0) {
    epoll_ctl(outer_, EPOLL_CTL_DEL, inner_, nullptr);
    close(inner_);
  }
  inner_ = epoll_create1(EPOLL_CLOEXEC);
  if (inner_ < 0) return;  // then Arm returns true every time
  ServerEvents(engine.servers()).ForEachFd([&](uint32_t server, int fd, FdKind kind) {
    Add(inner_, fd, uint64_t{server} << 1 | (kind == FdKind::kCompletions ? 1 : 0));
  });
  Add(outer_, inner_, kInner);
  fds_version_ = ServerEvents(engine.servers()).fds_version();
}

// Leaves a timer that rings too early as it is. That costs one Poll in vain, but saves a system
// call for each operation, since deadlines move on all the time.
void WakeFd::SetDue(int64_t due_ns, int64_t now_ns) {
  due_ns_ = due_ns;
  const bool rang = timer_ns_ <= now_ns;
  if (!rang && timer_ns_ <= due_ns) return;
  timer_ns_ = due_ns;
  SetTimer(due_ns == INT64_MAX ? 0 : std::max<int64_t>(due_ns - now_ns, 1));
}

void WakeFd::Kick() {
  timer_ns_ = 0;
  SetTimer(1);
}

// 0 turns the timer off.
void WakeFd::SetTimer(int64_t ns) {
  const itimerspec spec{.it_interval = {}, .it_value = ToTimespec(ns)};
  timerfd_settime(timer_, 0, &spec, nullptr);
}

void WakeFd::Sleep(int fd, int64_t ns) {
  pollfd one{fd, POLLIN, 0};
  const timespec time = ToTimespec(ns);
  ppoll(&one, 1, ns == INT64_MAX ? nullptr : &time, nullptr);
}

}  // namespace gannet
