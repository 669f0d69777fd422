#include "tests/server/group/replica/simulated_primary.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tests/server/group/replica/simulated_member.h"

namespace gannet {
namespace {

constexpr int64_t kMs = SimulatedTime::kMs;

}  // namespace

SimulatedPrimary::SimulatedPrimary(SimulatedWorld* world, SimulatedMember* member,
                                   const GroupRegister& known, RingTail tail, uint64_t clock_ms)
    : world_(world),
      member_(member),
      opening_(tail),
      ring_(SimulatedWorld::kRingBytes / 8),
      writer_(SimulatedWorld::BytesOf(&ring_), ++world->streams, opening_.first_lsn()),
      lease_(world->times),
      commit_(opening_.first_lsn()),
      membership_(member->store(), &lease_, &commit_, member->self(), known, member->Clock()),
      hand_over_(world->times, &membership_),
      clock_ms_(clock_ms),
      began_(member->Clock()),
      committed_(opening_.first_lsn()) {
  tail.ForEach([this](const RingRecord& record, uint64_t, uint64_t) {
    uncommitted_.emplace_back(record.change.key);
    uncommitted_keys_.emplace(record.change.key);
  });
}

uint64_t SimulatedPrimary::ClockMs() const {
  return clock_ms_ + static_cast<uint64_t>((member_->Clock() - began_) / kMs);
}

bool SimulatedPrimary::LeaseIsValid() const { return lease_.Valid(member_->Clock()); }

bool SimulatedPrimary::Serves() const { return open_ && !hand_over_.stopped() && LeaseIsValid(); }

std::vector<GroupMember> SimulatedPrimary::Backups() const {
  std::vector<GroupMember> backups = membership_.known().configuration.in_sync;
  std::erase(backups, member_->self());
  return backups;
}

void SimulatedPrimary::Turn() {
  AdvanceCommit();
  Open();
  if (open_ && !hand_over_.stopped()) TakeWrites();
  Ship();
  if (world_->time.now() >= beacon_at_ && lease_.MaySend(member_->Clock())) SendBeacons();
  if (world_->time.Fault(1'500)) HandOverToSomebody();
  if (hand_over_.Poll(member_->Clock())) beacon_at_ = 0;
  membership_.Poll(member_->Clock());
  DropLinks();
  if (!Serves()) return;
  // A client that asks now, with a clock that is slow.
  const int64_t left = std::min(lease_.LeftNs(member_->Clock()), hand_over_.LeaseNsMax());
  const int64_t believed = (left - left / 128) / 512 * 513;
  believed_until_ = std::max(believed_until_, world_->time.now() + believed);
  world_->primary_clock_ms = std::max(world_->primary_clock_ms, static_cast<int64_t>(ClockMs()));
}

void SimulatedPrimary::AdvanceCommit() {
  if (!membership_.MayCommit()) return;
  const uint64_t before = SimulatedWorld::NumberOf(committed_);
  committed_ = commit_.Advance(writer_.end().lsn, lease_, member_->Clock());
  for (uint64_t i = before; i < SimulatedWorld::NumberOf(committed_); ++i) {
    world_->OnCommitted(i, uncommitted_.front());
    uncommitted_keys_.erase(uncommitted_.front());
    uncommitted_.pop_front();
  }
}

void SimulatedPrimary::Open() {
  if (open_) return;
  const std::vector<GroupMember> backups = Backups();
  const bool all_linked = std::ranges::all_of(
      backups, [this](const GroupMember& it) { return links_.contains(it.incarnation); });
  if (all_linked) opening_.Send(&writer_, committed_);
  open_ = opening_.IsOver(committed_, lease_, member_->Clock());
}

void SimulatedPrimary::TakeWrites() {
  for (uint64_t n = world_->time.Below(4); n > 0; --n) {
    const bool again =
        !world_->unanswered.empty() && (world_->unanswered.size() > 60 || world_->time.OneIn(2));
    uint64_t write = world_->writes;
    if (again) {
      const uint64_t skip = world_->time.Below(world_->unanswered.size());
      write = *std::next(world_->unanswered.begin(), static_cast<int64_t>(skip));
    } else {
      world_->unanswered.insert(world_->writes++);
    }
    const std::string key = SimulatedWorld::KeyOf(write);
    const auto it = world_->number_of.find(key);
    const bool has =
        uncommitted_keys_.contains(key) ||
        (it != world_->number_of.end() && it->second < SimulatedWorld::NumberOf(committed_));
    if (!has) Append(key);
  }
}

void SimulatedPrimary::Append(const std::string& key) {
  const RingRecord record = SimulatedWorld::RecordOf(key);
  if (!writer_.HasRoomFor(record.bytes())) return;
  writer_.Append(record, committed_);
  uncommitted_.push_back(key);
  uncommitted_keys_.insert(key);
}

void SimulatedPrimary::Ship() {
  for (const auto& [incarnation, link] : links_) {
    if (link->fenced) continue;  // what is posted now never completes
    const RingWriter::Shipment shipment = writer_.Ship(link->id);
    if (shipment[0].bytes == 0) continue;
    int64_t lands = world_->time.now() + (world_->time.Fault(10) ? world_->time.Delay() : 0);
    if (!link->flights.empty()) lands = std::max(lands, link->flights.back().lands);
    link->flights.push_back({.lands = lands, .shipment = shipment});
    world_->time.At(lands, [this, link = link] {
      if (link->primary->primary() == this) Pump(link);
    });
  }
}

// WRITEs land, in their order. One that was posted before the fence may complete although it comes
// too late.
void SimulatedPrimary::Pump(const LinkPtr& link) {
  const int64_t now = world_->time.now();
  while (!link->closed && !link->flights.empty() && link->flights.front().lands <= now) {
    if (world_->cut[member_->node()][link->backup->node()] && !link->fenced) {
      if (link->cut_since < 0) link->cut_since = now;
      if (now - link->cut_since > 1'000 * kMs) return OnBroken(link);
      world_->time.After(20 * kMs, [this, link] {
        if (link->primary->primary() == this) Pump(link);
      });
      return;
    }
    link->cut_since = -1;
    const RingWriter::Shipment shipment = link->flights.front().shipment;
    link->flights.pop_front();
    if (link->fenced) {
      if (!link->backup->alive()) return;
      ++world_->tallies.late_copies;
    } else {
      for (const RingWriter::Chunk& chunk : shipment) {
        std::ranges::copy(SimulatedWorld::BytesOf(&ring_).subspan(chunk.offset, chunk.bytes),
                          SimulatedWorld::BytesOf(&link->ring).subspan(chunk.offset).begin());
      }
    }
    member_->Deliver([this, link] { OnWritten(link); });
  }
}

void SimulatedPrimary::OnWritten(const LinkPtr& link) {
  if (!HasLink(link)) return;
  writer_.OnCompleted(link->id);
  commit_.OnCompleted(link->backup->self().incarnation, writer_.completed_lsn(link->id));
}

bool SimulatedPrimary::HasLink(const LinkPtr& link) const {
  const auto it = links_.find(link->backup->self().incarnation);
  return it != links_.end() && it->second == link;
}

void SimulatedPrimary::SendBeacons() {
  beacon_at_ = world_->time.now() + world_->times.beacon_ns();
  const uint64_t sequence = lease_.OnSend(member_->Clock());
  for (const auto& [incarnation, link] : links_) {
    if (world_->time.Fault(30)) continue;
    member_->Tell(link->backup, [link = link, sequence, committed = committed_,
                                 clock_ms = ClockMs(), last = hand_over_.ended()] {
      link->backup->OnBeacon(link, sequence, committed, clock_ms, last);
    });
  }
}

void SimulatedPrimary::OnAnswer(const LinkPtr& link, uint64_t sequence, uint64_t consumed) {
  if (!HasLink(link)) return;
  const uint64_t name = link->backup->self().incarnation;
  if (!lease_.OnAnswer(name, sequence, member_->Clock())) world_->Wrong("an answer to no beacon");
  writer_.OnConsumed(link->id, consumed);  // an older answer may come later
}

void SimulatedPrimary::OnHello(const LinkPtr& link, bool joins) {
  // The news that the link is gone may come first. A device does not connect to what is gone.
  if (link->fenced) return;
  const GroupMember& backup = link->backup->self();
  const bool sent = writer_.end().lsn != opening_.first_lsn();
  const bool fits = joins ? open_ && !membership_.Counts(backup.incarnation)
                          : membership_.Counts(backup.incarnation) && !open_ && !sent;
  if (!fits || links_.contains(backup.incarnation)) return;
  link->id = writer_.AddLink();
  links_[backup.incarnation] = link;
  const RingReader::Begin begin = {.stream_id = writer_.stream_id(),
                                   .lsn = writer_.end().lsn,
                                   .position = writer_.end().position};
  const uint64_t tail_end = joins ? begin.lsn : opening_.tail_end();
  member_->TellReliably(link->backup, [link, begin, tail_end, clock_ms = ClockMs()] {
    link->backup->OnWelcome(link, begin, tail_end, clock_ms);
  });
}

void SimulatedPrimary::OnReady(const LinkPtr& link) {
  if (!HasLink(link)) return;
  membership_.Join(link->backup->self(), writer_.completed_lsn(link->id), member_->Clock());
  link->counted = true;  // it may be dropped before the next DropLinks
  beacon_at_ = 0;
}

void SimulatedPrimary::OnBroken(const LinkPtr& link) {
  if (!HasLink(link)) return;
  membership_.OnBroken(link->backup->self(), member_->Clock());
  if (!membership_.Counts(link->backup->self().incarnation)) Drop(link);
}

void SimulatedPrimary::Drop(const LinkPtr& link) {
  const LinkPtr kept = link;
  kept->closed = true;
  writer_.RemoveLink(kept->id);
  links_.erase(kept->backup->self().incarnation);
  member_->TellReliably(kept->backup, [kept] { kept->broken = true; });
}

// Of those that counted, and do not any more.
void SimulatedPrimary::DropLinks() {
  std::vector<LinkPtr> dropped;
  for (const auto& [incarnation, link] : links_) {
    const bool counts = membership_.Counts(incarnation);
    link->counted = link->counted || counts;
    if (link->counted && !counts) dropped.push_back(link);
  }
  for (const LinkPtr& link : dropped) {
    ++world_->tallies.removals;
    Drop(link);
  }
}

void SimulatedPrimary::HandOverToSomebody() {
  const std::vector<GroupMember> backups = Backups();
  if (!open_ || backups.empty() || hand_over_.begun()) return;
  ++world_->tallies.hand_overs;
  hand_over_.Begin(backups[world_->time.Below(backups.size())], member_->Clock());
}

}  // namespace gannet
