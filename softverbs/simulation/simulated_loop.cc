#include "softverbs/simulation/simulated_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cstdlib>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/fault/faults.h"
#include "softverbs/fault/nodes.h"
#include "softverbs/nic/nic.h"
#include "softverbs/nic/packet_handler.h"

namespace softverbs {
namespace {

constexpr int64_t kFirstNs = 1'000'000'000;
constexpr int64_t kStepMaxNs = 500;
// Enough for everything that a run leaves behind: connections in time wait, requests backing off.
constexpr int kStepsToEnd = 1'000'000;

int64_t Now() { return MonotonicNs(); }
// Relaxed: there is one thread.
void SetNow(int64_t ns) { simulated_ns.store(ns, std::memory_order_relaxed); }

uint32_t OrdinalOfNumber(uint32_t qpn) {
  const Qp* qp = Nic::Existing()->qps().Find(qpn);
  return qp == nullptr ? 0 : OrdinalOf(*qp);
}

}  // namespace

void SimulatedLoop::Restart(uint64_t seed) {
  fault::nodes = {};
  for (int steps = 0; steps < kStepsToEnd && Step();) ++steps;
  if (Nic* nic = Nic::Existing()) nic->engine().RestartSimulation();
  SetNow(kFirstNs);
  random_.seed(seed);
  fault::ResetOrdinals();
}

bool SimulatedLoop::Step(int64_t until_ns) {
  SetNow(Now() + 1 + static_cast<int64_t>(random_() % kStepMaxNs));
  const size_t posted = posted_.empty() ? 0 : 1;
  const size_t timers = TimerDue() ? 1 : 0;
  const std::vector<Ready> ready = ReadyWatches();
  Nic* nic = Nic::Existing();
  const size_t packets = nic == nullptr ? 0 : nic->engine().SimulatedChoices();
  const size_t choices = posted + timers + ready.size() + packets;
  if (choices == 0) return JumpToTimer(until_ns);
  size_t choice = random_() % choices;
  if (choice < posted) {
    RunPosted();
  } else if ((choice -= posted) < timers) {
    RunTimer();
  } else if ((choice -= timers) < ready.size()) {
    RunWatch(ready, choice);
  } else {
    RunPacket(choice - ready.size());
  }
  return true;
}

Loop::Watch SimulatedLoop::Add(int fd, uint32_t epoll_events, Handler handler) {
  const Watch watch = ++last_id_;
  epoll_event event{.events = epoll_events, .data = {.u64 = watch}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) abort();
  watches_.emplace(watch, Watched{fd, std::make_shared<Handler>(std::move(handler))});
  return watch;
}

void SimulatedLoop::Modify(Watch watch, uint32_t epoll_events) {
  const auto found = watches_.find(watch);
  if (found == watches_.end()) return;
  epoll_event event{.events = epoll_events, .data = {.u64 = watch}};
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second.fd, &event);
}

void SimulatedLoop::Remove(Watch watch) {
  const auto found = watches_.find(watch);
  if (found == watches_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  watches_.erase(found);
}

Loop::Timer SimulatedLoop::RunAt(int64_t monotonic_ns, std::function<void()> fn) {
  const Timer timer = ++last_id_;
  timers_.emplace(std::make_pair(monotonic_ns, timer), std::move(fn));
  deadlines_.emplace(timer, monotonic_ns);
  return timer;
}

void SimulatedLoop::Cancel(Timer timer) {
  const auto found = deadlines_.find(timer);
  if (found == deadlines_.end()) return;
  timers_.erase({found->second, timer});
  deadlines_.erase(found);
}

// The kernel's order differs from run to run. This sorts the watches by the order in which they
// were added.
std::vector<SimulatedLoop::Ready> SimulatedLoop::ReadyWatches() const {
  std::vector<Ready> ready;
  if (watches_.empty()) return ready;
  std::vector<epoll_event> events(watches_.size());
  const int n = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < n; ++i) {
    const epoll_event event = events[i];  // packed
    ready.emplace_back(Watch{event.data.u64}, uint32_t{event.events});
  }
  std::sort(ready.begin(), ready.end());
  return ready;
}

bool SimulatedLoop::TimerDue() const {
  return !timers_.empty() && timers_.begin()->first.first <= Now();
}

bool SimulatedLoop::JumpToTimer(int64_t until_ns) {
  if (timers_.empty() || timers_.begin()->first.first > until_ns) {
    if (until_ns != kForever) SetNow(std::max(Now(), until_ns));
    return false;
  }
  SetNow(timers_.begin()->first.first);
  RunTimer();
  return true;
}

void SimulatedLoop::RunPosted() {
  Log("work");
  const std::function<void()> fn = std::move(posted_.front());
  posted_.pop_front();
  fn();
}

void SimulatedLoop::RunTimer() {
  Log("timer");
  const auto first = timers_.begin();
  const std::function<void()> fn = std::move(first->second);
  deadlines_.erase(first->first.second);
  timers_.erase(first);
  fn();
}

void SimulatedLoop::RunWatch(const std::vector<Ready>& ready, size_t choice) {
  Log("descriptor " + std::to_string(choice + 1) + " of " + std::to_string(ready.size()));
  const auto [watch, events] = ready[choice];
  // A copy: the handler may remove its own watch.
  const std::shared_ptr<Handler> handler = watches_.at(watch).handler;
  (*handler)(events);
}

void SimulatedLoop::RunPacket(size_t choice) {
  PacketHeader packet;
  if (!Nic::Existing()->engine().ExecuteSimulated(choice, &packet)) return;
  Log("packet " + std::to_string(OrdinalOfNumber(packet.from_qpn)) + ">" +
      std::to_string(OrdinalOfNumber(packet.to_qpn)) + " type " +
      std::to_string(static_cast<int>(packet.type)) + " bytes " +
      std::to_string(packet.payload_bytes));
}

void SimulatedLoop::Log(const std::string& what) {
  if (log_ != nullptr) log_(log_argument_, (std::to_string(Now()) + " " + what).c_str());
}

}  // namespace softverbs
