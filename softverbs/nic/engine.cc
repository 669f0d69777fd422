#include "softverbs/nic/engine.h"

#include <sched.h>

#include <algorithm>

#include "softverbs/base/clock.h"
#include "softverbs/base/log.h"
#include "softverbs/nic/grh.h"
#include "softverbs/nic/nic.h"
#include "softverbs/nic/packet_handler.h"

namespace softverbs {
namespace {

constexpr int kPacketsPerTurn = 64;    // of one link, before the next gets its turn
constexpr size_t kLinksPerPoll = 64;   // looked at by one poll of the application
constexpr uint32_t kPollsToWake = 32;  // a program that waits for events polls once or twice
// How soon the standby timer looks at an application that polls: first, and in the long run.
constexpr int64_t kFirstStandbyNs = 50'000;
constexpr int64_t kLastStandbyNs = 1'000'000;
// The same for an application that waits. It is rung itself, so the timer need not hurry.
constexpr int64_t kStandbyOfBellNs = 8'000'000;
// A steady poller polls at least so often, on average. To wait for it costs no more than to wake
// the loop thread, which then takes a core from somebody who may need it more.
constexpr int64_t kSteadyPollNs = 50'000;
constexpr int64_t kSpinNs = 20'000;  // a wake-up costs more than this on most machines
// Spinning pays while it finds something. Where it does not, say because the peer waits for the
// very core we spin on, it is only tried now and then.
constexpr int kSpinCredit = 8;
constexpr uint32_t kSpinAnywayEvery = 64;
constexpr int kTurnsToSleep = 16;
constexpr size_t kMaxRefusals = 256;  // only a hostile peer has more requests refused at once

}  // namespace

void Engine::Poll() {
  if (simulated_) [[unlikely]]
    return;  // the scheduler decides when something happens
  // Relaxed and not atomic as a whole: the loop thread only asks whether it changes.
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!mutex_.try_lock()) return;  // whoever has it is driving
  DriveLocked(false);
  if (asleep_ && ++empty_polls_ >= kPollsToWake) {
    WakeLocked();
    StartStandbyLocked(kFirstStandbyNs);
  }
  mutex_.unlock();
}

void Engine::PrepareToSleep(uint32_t bell) {
  if (simulated_) [[unlikely]]
    return;
  bool busy;
  {
    const Pause pause(*this);
    empty_polls_ = 0;
    ++waits_;
    if (asleep_ && bell_ == bell) return;
    busy = SleepLocked(bell);
    if (bell != 0) StartStandbyLocked(kStandbyOfBellNs);
  }
  if (busy) Nic::Get()->WakeLoop();
}

void Engine::OnBell(uint32_t bell) {
  const Pause pause(*this);
  ++waits_;
  // Otherwise whoever changed that has looked at the links since.
  if (!asleep_ || bell_ != bell) return;
  WakeLocked();
  DriveLocked(true);
  StartStandbyLocked(kFirstStandbyNs);
}

void Engine::ForgetBell(uint32_t bell) {
  bool busy;
  {
    const Pause pause(*this);
    busy = asleep_ && bell_ == bell && SleepLocked(0);
  }
  if (busy) Nic::Get()->WakeLoop();
}

void Engine::OnDoorbell() {
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
      StartStandbyLocked(kFirstStandbyNs);  // the application polls: stand back
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
      if (asleep_) break;  // an application thread waits now, and is rung
    }
  }
  mutex_.unlock();
}

void Engine::AddLink(std::shared_ptr<Link> link) {
  const Pause pause(*this);
  links_.push_back(std::move(link));
}

void Engine::RemoveLink(const std::shared_ptr<Link>& link) {
  const Pause pause(*this);
  if (link->state() == Link::State::kUp) FinishLink(*link);
  link->GoDown();
  links_.erase(std::remove(links_.begin(), links_.end(), link), links_.end());
  for (uint32_t index = 0; index < kQpsPerProcess; ++index) {
    if (Qp* qp = qps_->At(index)) HandleLinkDown(*qp, *link);
  }
}

// Executes all that the peer sent.
void Engine::FinishLink(Link& link) {
  bool worked;
  do {
    worked = DriveLink(link);
    while (const auto packet = wire_.TakeOf(link)) {
      ExecuteParked(*packet);
      worked = true;
    }
  } while (worked);
}

void Engine::HandleParked() {
  if (simulated_) return;
  bool was_full;
  {
    const Pause pause(*this);
    was_full = wire_.Full();
    while (const auto packet = wire_.Take(0)) ExecuteParked(*packet);
  }
  if (was_full) Nic::Get()->WakeLoop();
}

void Engine::RestartSimulation() {
  const Pause pause(*this);
  wire_.EndStalls();
}

size_t Engine::SimulatedChoices() {
  const Pause pause(*this);
  return wire_.Choices();
}

bool Engine::ExecuteSimulated(size_t choice, PacketHeader* executed) {
  const Pause pause(*this);
  const auto packet = wire_.Take(choice);
  if (!packet) return false;
  *executed = packet->header;
  ExecuteParked(*packet);
  return true;
}

void Engine::ExecuteParked(const Wire::Packet& packet) {
  Link& link = *packet.link;
  Execute(link, packet.header, packet.payload.data());
  if (!link.refusals().empty()) SendRefusals(link);
}

void Engine::LockForControl() {
  controls_.fetch_add(1, std::memory_order_relaxed);
  mutex_.lock();
  controls_.fetch_sub(1, std::memory_order_relaxed);
}

bool Engine::DriveLocked(bool all) {
  const size_t count = all ? links_.size() : std::min(links_.size(), kLinksPerPoll);
  bool worked = false;
  for (size_t i = 0; i < count; ++i) {
    if (next_link_ >= links_.size()) next_link_ = 0;
    Link& link = *links_[next_link_++];
    if (link.state() == Link::State::kUp) worked |= DriveLink(link);
  }
  return worked;
}

bool Engine::DriveLink(Link& link) {
  RingConsumer& ring = link.consumer();
  PacketHeader header;
  const uint8_t* payload;
  int handled = 0;
  for (; handled < kPacketsPerTurn && !wire_.Full(); ++handled) {
    const RingConsumer::Result result = ring.Next(&header, &payload);
    if (result == RingConsumer::Result::kEmpty) break;
    if (result == RingConsumer::Result::kCorrupt) {
      DropCorrupt(link);
      break;
    }
    Dispatch(link, header, payload);
    ring.Release(header);
  }
  if (handled > 0 && ring.TakeStarving()) link.RingDoorbell();
  bool resumed = !link.refusals().empty() && SendRefusals(link);
  resumed |= link.HasWaiting() && ResumeWaiting(link);
  return handled > 0 || resumed;
}

void Engine::Dispatch(Link& link, const PacketHeader& header, const uint8_t* payload) {
  if (wire_.Wants(header) && wire_.Park(link, header, payload)) [[unlikely]]
    return;
  Execute(link, header, payload);
}

void Engine::Execute(Link& link, const PacketHeader& header, const uint8_t* payload) {
  if (header.type == PacketType::kDatagram && header.to_qpn == kMulticastQpn) {
    DispatchMulticast(link, header, payload);
  } else if (Qp* qp = qps_->Find(header.to_qpn)) {
    HandlePacket(*qp, link, header, payload);
  } else if (header.type <= PacketType::kFetchAdd) {
    Refuse(link, header);
  }
}

void Engine::DispatchMulticast(Link& link, const PacketHeader& header, const uint8_t* payload) {
  if (header.payload_bytes < kGrhBytes) return;
  for (uint32_t qpn : Nic::Get()->multicast().Members(ParseGrh(payload).destination)) {
    if (Qp* qp = qps_->Find(qpn)) HandlePacket(*qp, link, header, payload);
  }
}

void Engine::Refuse(Link& link, const PacketHeader& request) {
  PacketHeader nak{};
  nak.record_bytes = RecordBytes(0);
  nak.to_qpn = request.from_qpn;
  nak.from_qpn = request.to_qpn;
  nak.psn = request.psn;
  nak.epoch = request.epoch;
  nak.type = PacketType::kNak;
  nak.nak = NakCode::kNoQueuePair;
  if (link.refusals().size() < kMaxRefusals) link.refusals().push_back(nak);
  SendRefusals(link);
}

bool Engine::SendRefusals(Link& link) {
  std::vector<PacketHeader>& refusals = link.refusals();
  bool noted = true;  // retried at every turn: the link need not remember anybody
  size_t sent = 0;
  while (sent < refusals.size() && link.Send(refusals[sent], &noted) == Link::SendResult::kSent) {
    ++sent;
  }
  refusals.erase(refusals.begin(), refusals.begin() + sent);
  return sent > 0;
}

bool Engine::ResumeWaiting(Link& link) {
  const std::vector<uint32_t> waiting = link.TakeWaiting();
  for (uint32_t qpn : waiting) {
    if (Qp* qp = qps_->Find(qpn)) HandleLinkSpace(*qp);
  }
  return !waiting.empty();
}

void Engine::PublishLocked(bool asleep, uint32_t bell) {
  asleep_ = asleep;
  bell_ = bell;
  // A full barrier: what a peer sent before it saw this is in the rings that are looked at next.
  own_->sleep.store(Sleep::Next(own_->sleep.load(std::memory_order_relaxed), asleep, bell),
                    std::memory_order_seq_cst);
}

void Engine::WakeLocked() {
  empty_polls_ = 0;
  if (asleep_) PublishLocked(false, 0);
}

bool Engine::SleepLocked(uint32_t bell) {
  if (!asleep_ || bell_ != bell) PublishLocked(true, bell);
  for (int turn = 0; turn < kTurnsToSleep; ++turn) {
    if (!DriveLocked(true)) return false;
  }
  return true;
}

void Engine::StartStandbyLocked(int64_t first_ns) {
  if (standby_) return;
  // One that waits comes back by itself. If it is late it wants for a core, and the loop thread in
  // its place would only take that from others.
  const bool waits = waits_ != waits_at_start_;
  waits_at_start_ = waits_;
  standby_ns_ = waits ? kStandbyOfBellNs : first_ns;
  ArmStandbyLocked(standby_ns_);
}

void Engine::ArmStandbyLocked(int64_t most_ns) {
  standby_ = true;
  standby_polls_ = polls_.load(std::memory_order_relaxed);
  standby_waits_ = waits_;
  standby_since_ = MonotonicNs();
  standby_ns_ = std::min(standby_ns_, most_ns);
  Loop::Get().RunAt(standby_since_ + standby_ns_, [this] { Standby(); });
  // One that takes part steadily is checked ever more seldom.
  standby_ns_ *= 2;
}

void Engine::Standby() {
  bool busy = false;
  {
    const Pause pause(*this);
    standby_ = false;
    if (asleep_ && bell_ == 0) return;
    if (!IsLeftAloneLocked()) {
      const bool waits = asleep_ || waits_ != standby_waits_;
      return ArmStandbyLocked(waits ? kStandbyOfBellNs : kLastStandbyNs);
    }
    busy = SleepLocked(0);
  }
  if (busy) OnDoorbell();
}

bool Engine::IsLeftAloneLocked() {
  if (asleep_) {
    // What a peer rang for is seen to now, whether the application is late or never comes.
    DriveLocked(true);
    return waits_ == standby_waits_;
  }
  // One that polls in bursts, between other work, would keep its peers waiting for our next look:
  // they had better ring.
  const uint32_t polls = polls_.load(std::memory_order_relaxed) - standby_polls_;
  return polls * kSteadyPollNs < MonotonicNs() - standby_since_ && waits_ == standby_waits_;
}

void Engine::DropCorrupt(Link& link) {
  Report("process slot %u wrote nonsense into its ring: connection dropped", link.peer_slot());
  Nic::Get()->links().Drop(link.peer_slot());
}

}  // namespace softverbs
