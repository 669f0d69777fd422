// The order of a Turn: hear the followers, go from phase to phase, follow operators and the
// register, send beacons. All of it is the member's thread; what workers use is in PrimaryStream.

#include "server/group/members/primary.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace gannet {

Primary::Primary(const GroupContext& context, PrimaryOpener* opener, const GroupTerms& terms,
                 uint64_t stream_id, const GroupRegister& known, const RingTail& tail,
                 LinkQueues queues)
    : context_(context),
      opener_(opener),
      times_(TimesOf(terms)),
      tail_(tail),
      stream_(context, terms, stream_id, known, tail, std::move(queues)),
      moves_(context, times_, &stream_) {}

absl::StatusOr<std::unique_ptr<Primary>> Primary::Create(
    const GroupContext& context, PrimaryOpener* opener, const GroupTerms& terms, uint64_t stream_id,
    const GroupRegister& known, const RingTail& tail) {
  GANNET_ASSIGN_OR_RETURN(LinkQueues queues, LinkQueues::Create(context, terms.ring_bytes));
  return std::unique_ptr<Primary>(
      new Primary(context, opener, terms, stream_id, known, tail, std::move(queues)));
}

Primary::~Primary() = default;

PrimaryPhase Primary::phase() const {
  WordMutexLock lock(stream_.mutex());
  return stream_.lead().phase();
}

GroupRegister Primary::known() const {
  WordMutexLock lock(stream_.mutex());
  return stream_.lead().membership().known();
}

bool Primary::MayAdopt() const {
  WordMutexLock lock(stream_.mutex());
  return stream_.lead().membership().MayAdopt();
}

void Primary::OnArrival(ReplicaArrival arrival, BootTime now) {
  WordMutexLock lock(stream_.mutex());
  stream_.followers().OnArrival(std::move(arrival), now);
}

void Primary::OnGone(uint64_t name, BootTime now) {
  WordMutexLock lock(stream_.mutex());
  stream_.followers().OnGone(name, now);
}

void Primary::StepDown(BootTime now, std::string_view why) {
  WordMutexLock lock(stream_.mutex());
  stream_.lead().StepDown(now, why);
}

void Primary::BeginSessions(SessionCopies sessions) {
  WordMutexLock lock(stream_.mutex());
  stream_.ring().BeginSessions(std::move(sessions));
}

void Primary::PublishForJoiners() {
  if (!has_joiners_) return;
  uint64_t committed = 0;
  uint64_t position = 0;
  {
    WordMutexLock lock(stream_.mutex());
    committed = stream_.ring().committed();
    position = stream_.safe();
  }
  published_.Advance(committed, [this, position] {
    context_.server->Publish();
    return context_.server->published() >= position;
  });
}

bool Primary::Turn(BootTime now) {
  PublishForJoiners();
  bool applies = false;
  bool was_open = false;
  PrimaryPhase phase{};
  {
    WordMutexLock lock(stream_.mutex());
    Hear(now);
    Leadership& lead = stream_.lead();
    applies = lead.phase() == PrimaryPhase::kOpening &&
              lead.TryToOpen(&stream_.ring(), stream_.followers().AllLinked(), now);
    SendBeacons(now);
    FollowOthers(now);
    was_open = lead.open();
    if (was_open) lead.TellStanding(moves_.LeaseNsMax(), now);
    lead.FollowRegister();
    phase = lead.phase();
    next_at_ = std::min(beacon_at_, lead.hand_over().next_at());
    stream_.TellWhetherItTakes();
  }
  // Also if it was deposed just now: the lease says what it may end.
  if (was_open) {
    if (moves_.Poll()) beacon_at_ = BootTime();
    next_at_ = std::min({next_at_, beacon_at_, moves_.next_at()});
  }
  if (phase == PrimaryPhase::kApplies) Open(applies, now);
  const uint64_t safe_now = stream_.safe();
  return std::exchange(told_safe_, safe_now) != safe_now;
}

void Primary::Hear(BootTime now) {
  stream_.OnTurn();
  const Followers::Heard heard = stream_.followers().PollMessages(now);
  if (heard.closes) moves_.OnClosing(now);
  if (heard.beacon_is_due) beacon_at_ = BootTime();
  stream_.PumpLocked();
}

// An operator, a successor, and the register.
void Primary::FollowOthers(BootTime now) {
  Leadership& lead = stream_.lead();
  lead.FollowOperator(now);
  if (lead.FollowHandOver(now))
    beacon_at_ = BootTime();  // the last one, which the successor is to answer
  lead.Poll(now);
  stream_.followers().DropLinks(now);
}

void Primary::Open(bool applies, BootTime now) {
  if (applies) opener_->Open(tail_);
  if (!opener_->MayOpen(now)) {
    next_at_ = std::min(next_at_, now + kNsPerMs);
    return;
  }
  WordMutexLock lock(stream_.mutex());
  stream_.followers().RaiseStreamVersion();
  stream_.lead().Open();
  stream_.TellWhetherItTakes();
  // Not before: a client would read what the tail replaces.
  stream_.lead().TellStanding(moves_.LeaseNsMax(), now);
}

void Primary::SendBeacons(BootTime now) {
  const PrimaryRing& ring = stream_.ring();
  Leadership& lead = stream_.lead();
  const int64_t early_ns = ring.WantsRoom() ? times_.beacon_ns() - kNsPerMs : 0;
  if (now < beacon_at_ && now < beacon_at_ - early_ns) return;
  if (lead.open()) stream_.followers().RaiseStreamVersion();
  if (!lead.lease().MaySend(now)) return;
  beacon_at_ = now + times_.beacon_ns();
  Beacon beacon = NewBeacon();
  beacon.epoch = lead.epoch();
  beacon.sequence = lead.lease().OnSend(now);
  beacon.clock_ms = context_.server->Time().ms();
  has_joiners_ = false;
  for (const auto& follower : stream_.followers().all()) {
    if (!follower->follows() || !follower->beacons.MaySend()) continue;
    const bool in_sync = !follower->receives() && lead.configuration().IsInSync(follower->member);
    has_joiners_ |= !in_sync;
    beacon.committed = published_.ToldTo(in_sync, ring.committed());
    follower->beacons.OnSend(beacon.sequence);
    const bool last = lead.hand_over().ended() && !follower->receives() &&
                      ring.version() >= kStreamVersionOfLastBeacons;
    beacon.header = NewBeacon(last ? ReplicaKind::kLastBeacon : ReplicaKind::kBeacon).header;
    follower->link->Send(beacon);
  }
}

// WRITEs that workers post are mostly polled by them at once, and a worker that waits for one is
// woken by it. Events of those would only wake this thread for nothing.
absl::Status Primary::Arm() {
  GANNET_RETURN_IF_ERROR(stream_.queues().ArmMessages());
  if (stream_.workers_wait()) return absl::OkStatus();
  WordMutexLock lock(stream_.mutex());
  return stream_.ring().writer().ships() ? stream_.queues().ArmStream() : absl::OkStatus();
}

void Primary::Woken() {
  stream_.queues().TakeMessageEvents();
  stream_.queues().TakeStreamEvents();
}

Primary::Seen Primary::Look() const {
  const BootTime now = context_.clocks.boot.Now();
  WordMutexLock lock(stream_.mutex());
  const Leadership& lead = stream_.lead();
  const PrimaryRing& ring = stream_.ring();
  Seen seen = {.epoch = lead.epoch(),
               .end = ring.writer().end().lsn,
               .committed = ring.committed(),
               .lease_left_ns = std::max<int64_t>(lead.lease().LeftNs(now), 0),
               .waiting_bytes = ring.waiting_bytes(),
               .links_broken = stream_.followers().links_broken(),
               .removed = lead.membership().removed(),
               .hands_over = lead.hand_over().begun(),
               .stream_version = ring.version(),
               .ended_map = moves_.ended_map()};
  for (const auto& follower : stream_.followers().all()) {
    if (!follower->said_hello()) continue;
    (follower->receives() ? seen.receivers : seen.backups).push_back(LookAt(*follower, now));
  }
  return seen;
}

Primary::Seen::Backup Primary::LookAt(const Follower& follower, BootTime now) const {
  const Leadership& lead = stream_.lead();
  const RingWriter& writer = stream_.ring().writer();
  const bool receives = follower.receives();
  return {.node = follower.member.node,
          .in_sync = !receives && lead.configuration().IsInSync(follower.member),
          .linked = !follower.link->closing(),
          .rail = follower.rail,
          .heard = !receives && lead.lease().IsHeard(follower.member.incarnation, now),
          .completed = writer.completed_lsn(follower.ring),
          .applied = follower.applied,
          .behind_bytes = writer.unconsumed_bytes(follower.ring)};
}

}  // namespace gannet
