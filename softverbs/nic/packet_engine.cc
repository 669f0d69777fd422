#include "softverbs/nic/packet_engine.h"

#include <sched.h>

#include <algorithm>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/nic/nic.h"
#include "softverbs/nic/packet_handler.h"

namespace softverbs {
namespace {

constexpr size_t kLinksPerPoll = 64;   // links that one poll of the application looks at
constexpr uint32_t kPollsToWake = 32;  // a program that waits for events polls once or twice
constexpr int64_t kSpinNs = 20'000;    // a wake-up costs more than this on most machines
// Spinning pays only if it finds packets. It may not, for example because the peer waits for the
// core that we spin on. So after kSpinCredit fruitless times in a row, only one doorbell in
// kSpinAnywayEvery spins.
constexpr int kSpinCredit = 8;
constexpr uint32_t kSpinAnywayEvery = 64;
constexpr int kTurnsToSleep = 16;
// A thread that posts sends when so much waits. Some thirty READs share a system call then.
constexpr uint64_t kLeftToPollMax = 2048;
// Some 10 us. An answer that comes within this time finds the thread polling.
constexpr uint32_t kPollsToYield = 16;

}  // namespace

void PacketEngine::Poll() {
  if (simulated_) [[unlikely]]
    return;  // the simulation's scheduler decides when packets are executed
  // Relaxed, and not one atomic increment: the loop thread only checks whether the count changes.
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!mutex_.try_lock()) return;  // the holder of the lock drives already
  RingForPostsLocked();
  const bool worked = DriveForApplicationLocked(false);
  if (acks_owe_rings_ && !worked && ++quiet_polls_ > 1) RingForAcksLocked();
  const bool yields = has_remote_ && IsIdleLocked(worked);
  // While peers ring a bell, it stays asleep: the application armed a CQ, may stop polling at any
  // time, and peers ring only once for each sleep anyway.
  if (asleep_ && bell_ == 0 && ++empty_polls_ >= kPollsToWake) {
    application_.Polls();
    WakeLocked();
    StartPollStandbyLocked();
  }
  mutex_.unlock();
  if (yields) sched_yield();
}

void PacketEngine::PrepareToSleep(uint32_t bell) {
  if (simulated_) [[unlikely]]
    return;
  bool busy;
  {
    const Pause pause(*this);
    empty_polls_ = 0;
    application_.Waits();
    if (asleep_ && bell_ == bell) return;
    busy = SleepLocked(bell);
    if (bell != 0) StartStandbyLocked();
  }
  if (busy) Nic::Get()->WakeLoop();
}

void PacketEngine::OnBell(uint32_t bell) {
  const Pause pause(*this);
  application_.Waits();
  // If the engine does not sleep with this bell any more, the thread that changed that has looked
  // at the links since.
  if (!asleep_ || bell_ != bell) return;
  WakeLocked();
  DriveForApplicationLocked(true);
  StartStandbyLocked();
}

void PacketEngine::ForgetBell(uint32_t bell) {
  bool busy;
  {
    const Pause pause(*this);
    busy = asleep_ && bell_ == bell && SleepLocked(0);
  }
  if (busy) Nic::Get()->WakeLoop();
}

void PacketEngine::OnDoorbell() {
  mutex_.lock();
  WakeLocked();
  const uint32_t polls_before = polls_.load(std::memory_order_relaxed);
  const bool spin = !simulated_ && (spin_credit_ > 0 || ++doorbells_ % kSpinAnywayEvery == 0);
  bool spinning = false;
  int64_t give_up = 0;
  for (;;) {
    const bool worked = DriveLocked(true);
    if (spinning && worked) spin_credit_ = kSpinCredit;
    if (polls_.load(std::memory_order_relaxed) - polls_before > kPollsToWake) {
      StartPollStandbyLocked();  // the application polls, so it drives from now on
      break;
    }
    const int64_t now = MonotonicNs();
    if (worked) give_up = spin ? now + kSpinNs : now;
    if (!worked && now >= give_up) {
      if (spinning && spin_credit_ > 0) --spin_credit_;
      if (!SleepLocked(0)) break;
      WakeLocked();
    }
    spinning = spin;
    if (controls_.load(std::memory_order_relaxed) > 0) {
      mutex_.unlock();
      sched_yield();
      mutex_.lock();
      if (asleep_) break;  // an application thread waits now, and peers ring its bell
    }
  }
  mutex_.unlock();
}

void PacketEngine::AddLink(std::shared_ptr<Link> link) {
  const Pause pause(*this);
  has_remote_ |= link->remote();
  links_.push_back(std::move(link));
}

void PacketEngine::RemoveLink(const std::shared_ptr<Link>& link) {
  const Pause pause(*this);
  if (link->state() == Link::State::kUp) executor_.Finish(*link, /*ask=*/asleep_);
  if (link->GoDown() == Link::State::kUp && link->remote()) link->pump()->Abort();
  links_.erase(std::remove(links_.begin(), links_.end(), link), links_.end());
  for (uint32_t index = 0; index < kQpsPerProcess; ++index) {
    if (Qp* qp = qps_->At(index)) HandleLinkDown(*qp, *link);
  }
}

void PacketEngine::HandleParked() {
  if (simulated_) return;
  bool was_full;
  {
    const Pause pause(*this);
    was_full = executor_.parked().Full();
    while (const auto packet = executor_.parked().Take(0)) executor_.ExecuteParked(*packet);
  }
  if (was_full) Nic::Get()->WakeLoop();
}

void PacketEngine::RestartSimulation() {
  const Pause pause(*this);
  executor_.parked().EndStalls();
  // Where a ring ends decides when it is full, so each run begins at the ring's start.
  for (const std::shared_ptr<Link>& link : links_) link->RestartRing();
}

size_t PacketEngine::SimulatedChoices() {
  const Pause pause(*this);
  return executor_.parked().Choices();
}

bool PacketEngine::ExecuteSimulated(size_t choice, PacketHeader* executed) {
  const Pause pause(*this);
  const auto packet = executor_.parked().Take(choice);
  if (!packet) return false;
  *executed = packet->header;
  executor_.ExecuteParked(*packet);
  return true;
}

void PacketEngine::LockForControl() {
  controls_.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
  controls_.fetch_sub(1, std::memory_order_relaxed);
}

bool PacketEngine::DriveLocked(bool all) {
  const size_t count = all ? links_.size() : std::min(links_.size(), kLinksPerPoll);
  bool worked = false;
  for (size_t i = 0; i < count; ++i) {
    if (next_link_ >= links_.size()) next_link_ = 0;
    Link& link = *links_[next_link_++];
    if (link.state() != Link::State::kUp || !executor_.Drive(link, /*ask=*/asleep_)) continue;
    worked = true;
    if (link.OwesRing()) {
      acks_owe_rings_ = true;
      quiet_polls_ = 0;
    }
  }
  return worked;
}

bool PacketEngine::DriveForApplicationLocked(bool all) {
  // An engine that sleeps may have no standby timer to ring later, so it rings at once.
  if (!asleep_) ring_for = RingFor::kRequests;
  const bool worked = DriveLocked(all);
  ring_for = RingFor::kAll;
  return worked;
}

bool PacketEngine::LeaveToPoll(Link& link) {
  // Relaxed: only a hint that keeps others from the exchange below.
  if (!link.remote() || !polled_steadily_.load(std::memory_order_relaxed)) return false;
  if (link.UnsentBytes() >= kLeftToPollMax) return false;
  // Sequentially consistent, as in PublishLocked: either it sees the debt, or we see that the
  // application polls no more.
  posts_owe_rings_.store(true, std::memory_order_seq_cst);
  return polled_steadily_.load(std::memory_order_seq_cst);
}

void PacketEngine::RingForPostsLocked() {
  // Sequentially consistent, as in LeaveToPoll.
  if (!posts_owe_rings_.load(std::memory_order_seq_cst)) return;
  // Before the links are looked at: a later debt sets it again.
  posts_owe_rings_.store(false, std::memory_order_seq_cst);
  for (const std::shared_ptr<Link>& link : links_) {
    if (link->remote() && link->OwesRing()) link->RingDoorbell();
  }
}

void PacketEngine::RingForAcksLocked() {
  if (!acks_owe_rings_) return;
  acks_owe_rings_ = false;
  for (const std::shared_ptr<Link>& link : links_) {
    if (link->OwesRing()) link->RingDoorbell();
  }
}

void PacketEngine::PublishLocked(bool asleep, uint32_t bell) {
  if (asleep) RingForAcksLocked();
  asleep_ = asleep;
  bell_ = bell;
  polled_awake_ = false;
  polled_steadily_.store(false, std::memory_order_seq_cst);
  RingForPostsLocked();
  if (asleep) WatchRemoteLocked(true);
  // Sequentially consistent, because a full barrier is needed. If a peer sent a packet before it
  // could see this store, the packet is in the rings that the caller looks at next.
  own_->sleep.store(Sleep::Next(own_->sleep.load(std::memory_order_relaxed), asleep, bell),
                    std::memory_order_seq_cst);
}

// While an application thread polls, it reads from the sockets of remote links. Otherwise the loop
// thread watches them.
void PacketEngine::WatchRemoteLocked(bool on) {
  if (!has_remote_) return;
  for (const std::shared_ptr<Link>& link : links_) {
    if (link->remote() && link->state() == Link::State::kUp) link->pump()->WatchInput(on);
  }
}

bool PacketEngine::IsIdleLocked(bool worked) {
  idle_polls_ = worked ? 0 : idle_polls_ + 1;
  return idle_polls_ > kPollsToYield;
}

void PacketEngine::WakeLocked() {
  empty_polls_ = 0;
  if (asleep_) PublishLocked(false, 0);
}

bool PacketEngine::SleepLocked(uint32_t bell) {
  if (!asleep_ || bell_ != bell) PublishLocked(true, bell);
  for (int turn = 0; turn < kTurnsToSleep; ++turn) {
    if (!DriveLocked(true)) return false;
  }
  return true;
}

void PacketEngine::StartStandbyLocked() {
  if (!standby_) ArmStandbyLocked(application_.Begin());
}

void PacketEngine::StartPollStandbyLocked() {
  polled_awake_ = true;
  polled_steadily_.store(true, std::memory_order_relaxed);
  WatchRemoteLocked(false);
  if (standby_) {
    if (standby_due_ - MonotonicNs() <= Patience::kPollsNsMax) return;
    standby_ = false;
    ++standby_number_;  // the timer that runs would look too late, and is ignored when it fires
  }
  StartStandbyLocked();
}

void PacketEngine::ArmStandbyLocked(int64_t wait_ns) {
  if (polled_awake_) wait_ns = std::min(wait_ns, Patience::kPollsNsMax);
  standby_ = true;
  standby_due_ = application_.Mark(polls_.load(std::memory_order_relaxed)) + wait_ns;
  Loop::Get().RunAt(standby_due_, [this, number = standby_number_] { Standby(number); });
}

void PacketEngine::Standby(uint32_t number) {
  bool busy = false;
  {
    const Pause pause(*this);
    if (number != standby_number_) return;
    standby_ = false;
    if (asleep_ && bell_ == 0) return;
    RingForAcksLocked();
    RingForPostsLocked();
    // A peer may have rung the application's bell. Its packets are executed now, in case the
    // application is late or never comes.
    if (asleep_) DriveLocked(true);
    const int64_t wait_ns = application_.Next(LookAtApplicationLocked(), asleep_);
    if (wait_ns > 0) return ArmStandbyLocked(wait_ns);
    busy = SleepLocked(0);
  }
  if (busy) OnDoorbell();
}

Patience::Found PacketEngine::LookAtApplicationLocked() {
  if (application_.Came()) return Patience::Found::kCame;
  if (asleep_ && !Nic::Get()->bells().Rung(bell_)) return Patience::Found::kNotRung;
  return application_.Look(polls_.load(std::memory_order_relaxed), asleep_);
}

}  // namespace softverbs
