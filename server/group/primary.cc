#include "server/group/primary.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/status_macros.h"
#include "common/rdma/queue_pair.h"
#include "glog/logging.h"

namespace gannet {
namespace {

constexpr uint32_t kMessageCompletions = 8192;
constexpr uint32_t kStreamCompletions = 8192;
constexpr size_t kPollMax = 16;

}  // namespace

Primary::Primary(const GroupContext& context, PrimaryOpener* opener, const GroupTerms& terms,
                 uint64_t stream_id, const GroupRegister& known, const RingTail& tail, Made made)
    : context_(context),
      opener_(opener),
      terms_(terms),
      times_{.lease_ns = int64_t{terms.lease_ms} * kNsPerMs},
      made_(std::move(made)),
      environment_{.device = &context.device,
                   .pd = context.pd,
                   .listener = context.listener,
                   .messages_cq = made_.messages_cq.get(),
                   .stream_cq = made_.stream_cq.get(),
                   .ring = made_.ring.bytes(),
                   .ring_lkey = made_.ring_mr->lkey},
      opening_(tail),
      tail_(tail),
      writer_(made_.ring.bytes(), stream_id, opening_.first_lsn()),
      lease_(times_),
      commit_(opening_.first_lsn()),
      membership_(context.group.config_store, &lease_, &commit_, context.self, known,
                  context.clock()),
      hand_over_(times_, &membership_),
      end_(times_),
      min_copies_(terms.min_copies),
      outbox_(&writer_, kStreamVersions.min, known.configuration.epoch << 32),
      committed_(opening_.first_lsn()) {}

absl::StatusOr<std::unique_ptr<Primary>> Primary::Create(
    const GroupContext& context, PrimaryOpener* opener, const GroupTerms& terms, uint64_t stream_id,
    const GroupRegister& known, const RingTail& tail) {
  Made made;
  ibv_context* const verbs = context.device.verbs;
  GANNET_ASSIGN_OR_RETURN(made.ring, PrivateMemory::Create(terms.ring_bytes));
  GANNET_ASSIGN_OR_RETURN(made.ring_mr,
                          RegisterMemory(context.pd, made.ring.bytes(), RemoteAccess::kNone));
  GANNET_ASSIGN_OR_RETURN(made.messages_cq,
                          CompletionQueue::Create(verbs, kMessageCompletions, true));
  GANNET_ASSIGN_OR_RETURN(made.stream_cq, CompletionQueue::Create(verbs, kStreamCompletions, true));
  return std::unique_ptr<Primary>(
      new Primary(context, opener, terms, stream_id, known, tail, std::move(made)));
}

Primary::~Primary() = default;

GroupRegister Primary::known() const {
  WordMutexLock lock(mutex_);
  return membership_.known();
}

bool Primary::MayAdopt() const {
  WordMutexLock lock(mutex_);
  return membership_.MayAdopt();
}

void Primary::Keep(const Kept& kept) {
  if (kept_.empty()) writer_.KeepFrom(kept.from);
  if (kept_.size() < kKeptMax) return kept_.push_back(kept);
  kept_.back().position = kept.position;
}

void Primary::LetPublishedGo() {
  if (kept_.empty()) return;
  const uint64_t published = context_.server->published();
  const uint64_t before = kept_.front().from;
  while (!kept_.empty() && kept_.front().position <= published) kept_.pop_front();
  const uint64_t from = kept_.empty() ? RingWriter::kKeepNone : kept_.front().from;
  if (from != before) writer_.KeepFrom(from);
}

void Primary::BeginSessions(SessionCopies sessions) {
  WordMutexLock lock(mutex_);
  sessions_ = std::move(sessions);
}

void Primary::Pump() {
  WordMutexLock lock(mutex_);
  const uint64_t before = safe_.load(std::memory_order_relaxed);
  PumpLocked();
  if (!WantsRoom() && !failed_ && !OthersWaitFor(before)) return;
  if (!nudged_.exchange(true, std::memory_order_relaxed)) context_.server->WakeMember();
}

// The member's thread wakes workers that sleep until more is committed, if another worker took the
// completions.
bool Primary::OthersWaitFor(uint64_t before) const {
  return context_.workers > 1 && waiting_workers_.load(std::memory_order_relaxed) > 0 &&
         safe_.load(std::memory_order_relaxed) != before;
}

void Primary::BeginWait() {
  waiting_workers_.fetch_add(1, std::memory_order_relaxed);
  made_.stream_cq->Arm().IgnoreError();  // a queue that is lost fails the next WRITE
}

void Primary::EndWait(bool slept) {
  waiting_workers_.fetch_sub(1, std::memory_order_relaxed);
  if (slept) made_.stream_cq->TakeEvent();
}

bool Primary::WantsRoom() const {
  return !outbox_.empty() || writer_.free_bytes() < made_.ring.bytes().size() / 2;
}

void Primary::PumpLocked() {
  LetPublishedGo();
  outbox_.Fill(committed_);
  Ship();
  PollWrites();
  AdvanceCommit();
}

void Primary::Ship() {
  for (const auto& backup : backups_) {
    if (!backup->member || backup->failed || backup->link->closing()) continue;
    const RingWriter::Shipment shipment = writer_.Ship(backup->ring);
    if (shipment[0].bytes == 0) continue;
    backup->failed = !backup->link->Write(shipment);
    failed_ |= backup->failed;
  }
}

void Primary::PollWrites() {
  std::array<ibv_wc, kPollMax> completions;
  while (const size_t n = made_.stream_cq->Poll(completions)) {
    for (size_t i = 0; i < n; ++i) {
      const WrId id = WrId::Unpack(completions[i].wr_id);
      Backup* const backup = FindLink(id.owner);
      if (backup == nullptr) continue;
      if (static_cast<LinkWork>(id.kind) == LinkWork::kDrain) {
        backup->link->OnDrained(id.slot);
      } else if (completions[i].status != IBV_WC_SUCCESS) {
        backup->failed = failed_ = true;
      } else if (backup->member) {
        writer_.OnCompleted(backup->ring);
        if (backup->receives) continue;
        commit_.OnCompleted(backup->member->incarnation, writer_.completed_lsn(backup->ring));
      }
    }
  }
}

// The clock is read after the completions were polled (Commit::Advance says why).
void Primary::AdvanceCommit() {
  if (!membership_.MayCommit()) return;
  committed_ = commit_.Advance(writer_.end().lsn, lease_, context_.clock());
  const uint64_t safe = outbox_.PositionAt(committed_);
  if (safe != safe_.load(std::memory_order_relaxed) && !HasCopies()) [[unlikely]]
    short_commits_.fetch_add(1, std::memory_order_relaxed);
  safe_.store(safe, std::memory_order_release);
}

void Primary::PublishForJoiners() {
  if (!has_joiners_) return;
  uint64_t committed = 0;
  uint64_t position = 0;
  {
    WordMutexLock lock(mutex_);
    committed = committed_;
    position = safe();
  }
  published_.Advance(committed, [this, position] {
    context_.server->Publish();
    return context_.server->published() >= position;
  });
}

bool Primary::Turn(int64_t now) {
  PublishForJoiners();
  bool applies = false;
  bool was_open = false;
  {
    WordMutexLock lock(mutex_);
    nudged_.store(false, std::memory_order_relaxed);
    PollMessages(now);
    PumpLocked();
    applies = TryToOpen(now);
    const bool due =
        now >= beacon_at_ || (WantsRoom() && now >= beacon_at_ - times_.beacon_ns() + kNsPerMs);
    if (due && open()) RaiseStreamVersion();
    if (due && lease_.MaySend(now)) SendBeacons(now);
    FollowOperator(now);
    FollowHandOver(now);
    membership_.Poll(now);
    DropLinks(now);
    if (open()) TellStanding(now);
    was_open = open();
    if (membership_.deposed()) To(PrimaryPhase::kDeposed);
    next_ns_ = std::min(beacon_at_, hand_over_.next_ns());
    TellWhetherItTakes();
  }
  // Also if it was deposed just now: the lease says what it may end.
  if (was_open) EndPartitions();
  if (phase_.now() == PrimaryPhase::kApplies) Open(applies, now);
  const uint64_t safe_now = safe();
  return std::exchange(told_safe_, safe_now) != safe_now;
}

void Primary::To(PrimaryPhase next) {
  const bool opens = phase_.now() == PrimaryPhase::kApplies && next == PrimaryPhase::kOpen;
  phase_.To(next);
  if (!opens) return;
  LOG(INFO) << "takes clients, as primary of epoch " << membership_.known().configuration.epoch;
}

void Primary::Open(bool applies, int64_t now) {
  if (applies) opener_->Open(tail_);
  if (!opener_->MayOpen()) {
    next_ns_ = std::min(next_ns_, now + kNsPerMs);
    return;
  }
  WordMutexLock lock(mutex_);
  RaiseStreamVersion();
  To(PrimaryPhase::kOpen);
  TellWhetherItTakes();
  TellStanding(now);  // not before: a client would read what the tail replaces
}

void Primary::TellWhetherItTakes() {
  has_copies_.store(HasCopies(), std::memory_order_relaxed);
  takes_.store(open() && TakesChanges(), std::memory_order_relaxed);
}

bool Primary::TryToOpen(int64_t now) {
  if (phase_.now() != PrimaryPhase::kOpening) return false;
  bool all_linked = true;
  for (const GroupMember& member : membership_.known().configuration.in_sync) {
    all_linked &= member == context_.self || HasLink(member.incarnation, false);
  }
  if (all_linked) opening_.Send(&writer_, committed_);
  if (!opening_.IsOver(committed_, lease_, now)) return false;
  To(PrimaryPhase::kApplies);
  return true;
}

void Primary::TellStanding(int64_t now) {
  const bool grants = phase_.now() != PrimaryPhase::kStepsDown && membership_.MayCommit();
  context_.standing->SetServes(grants);
  const int64_t left = grants ? lease_.LeftNs(now) : 0;
  context_.standing->SetLeaseMax(std::min(hand_over_.LeaseNsMax(), end_.LeaseNsMax()));
  context_.standing->SetLeaseEnd(left > 0 ? now + left : 0);
}

void Primary::SendBeacons(int64_t now) {
  beacon_at_ = now + times_.beacon_ns();
  Beacon beacon = NewBeacon();
  beacon.epoch = membership_.known().configuration.epoch;
  beacon.sequence = lease_.OnSend(now);
  beacon.clock_ms = context_.now_ms();
  has_joiners_ = false;
  for (const auto& backup : backups_) {
    if (!backup->member || backup->failed || backup->link->closing()) continue;
    if (!backup->beacons.MaySend()) continue;
    const bool in_sync =
        !backup->receives && membership_.known().configuration.IsInSync(*backup->member);
    has_joiners_ |= !in_sync;
    beacon.committed = published_.ToldTo(in_sync, committed_);
    backup->beacons.OnSend(beacon.sequence);
    const bool last =
        hand_over_.ended() && !backup->receives && stream_version_ >= kStreamVersionOfLastBeacons;
    beacon.header = NewBeacon(last ? ReplicaKind::kLastBeacon : ReplicaKind::kBeacon).header;
    if (!backup->link->Send(beacon)) backup->failed = true;
  }
}

// Whoever joins later is refused if it does not speak the version. So all who may take over speak
// it, and whoever does begins with the oldest one, which survivors of all versions know.
void Primary::RaiseStreamVersion() {
  while (stream_version_ < kStreamVersions.max) {
    const auto next = static_cast<uint16_t>(stream_version_ + 1);
    for (const GroupMember& member : membership_.known().configuration.in_sync) {
      if (member != context_.self && !Speaks(member, next)) return;
    }
    for (const auto& backup : backups_) {
      if (backup->member && !backup->link->closing() && !Speaks(*backup->member, next)) return;
    }
    stream_version_ = next;
    outbox_.RaiseTo(next);
    LOG(INFO) << "the stream has version " << next << " from now on, which all members speak";
  }
}

bool Primary::Speaks(const GroupMember& member, uint16_t version) const {
  const std::optional<NodeSeen> seen = context_.group.directory->NodeOf(member.node);
  return seen && seen->incarnation == member.incarnation && seen->stream_version >= version;
}

bool Primary::HasCopies() const { return membership_.copies() >= min_copies_; }

// An operator may have taken a node out of the group, want another primary, or more copies.
void Primary::FollowOperator(int64_t now) {
  const GroupTerms terms = context_.group.directory->terms();
  const std::vector<std::string>& members = terms.members;
  min_copies_ = terms.min_copies;
  const auto& configuration = membership_.known().configuration;
  for (const GroupMember& member : configuration.in_sync) {
    const bool wanted = std::ranges::find(members, member.node) != members.end();
    if (!wanted && member != context_.self) membership_.OnBroken(member, now);
  }
  const std::optional<std::string> successor = context_.group.directory->WantedSuccessor();
  if (!successor || phase_.now() != PrimaryPhase::kOpen) return;
  context_.group.directory->ForgetWantedSuccessor();
  for (const GroupMember& member : configuration.in_sync) {
    if (member.node != *successor || member == context_.self) continue;
    LOG(INFO) << "hands over to " << member.node << ", as an operator wants";
    return BeginHandOver(member, now);
  }
  LOG(WARNING) << "does not hand over to " << *successor
               << ", which is primary already, or not in sync";
}

void Primary::StepDown(int64_t now, std::string_view why) {
  WordMutexLock lock(mutex_);
  if (phase_.now() != PrimaryPhase::kOpen) return;
  for (const GroupMember& member : membership_.known().configuration.in_sync) {
    if (member == context_.self || !lease_.IsHeard(member.incarnation, now)) continue;
    LOG(INFO) << "hands over to " << member.node << ", as " << why;
    return BeginHandOver(member, now);
  }
}

void Primary::BeginHandOver(const GroupMember& successor, int64_t now) {
  hand_over_.Begin(successor, now);
  To(PrimaryPhase::kHandsOver);
}

// Before `membership_` is polled, as HandOver wants.
void Primary::FollowHandOver(int64_t now) {
  if (hand_over_.Poll(now)) beacon_at_ = 0;  // the last beacon, which the successor is to answer
  const PrimaryPhase phase = phase_.now();
  if (phase == PrimaryPhase::kHandsOver && hand_over_.stopped()) To(PrimaryPhase::kStepsDown);
  if (phase == PrimaryPhase::kStepsDown && !hand_over_.begun()) To(PrimaryPhase::kOpen);
}

Primary::Backup* Primary::FindLink(uint32_t number) {
  for (const auto& backup : backups_) {
    if (backup->link->number() == number) return backup.get();
  }
  return nullptr;
}

bool Primary::HasLink(uint64_t incarnation, bool receives) const {
  return std::ranges::any_of(backups_, [&](const auto& backup) {
    return backup->member && backup->member->incarnation == incarnation &&
           backup->receives == receives;
  });
}

// WRITEs that workers post are mostly polled by them at once, and a worker that waits for one is
// woken by it. Events of those would only wake this thread for nothing.
absl::Status Primary::Arm() {
  GANNET_RETURN_IF_ERROR(made_.messages_cq->Arm());
  if (waiting_workers_.load(std::memory_order_relaxed) > 0) return absl::OkStatus();
  WordMutexLock lock(mutex_);
  return writer_.ships() ? made_.stream_cq->Arm() : absl::OkStatus();
}

void Primary::Woken() {
  made_.messages_cq->TakeEvent();
  made_.stream_cq->TakeEvent();
}

Primary::Seen Primary::Look() const {
  const int64_t now = context_.clock();
  WordMutexLock lock(mutex_);
  const GroupConfiguration& configuration = membership_.known().configuration;
  Seen seen = {.epoch = configuration.epoch,
               .end = writer_.end().lsn,
               .committed = committed_,
               .lease_left_ns = std::max<int64_t>(lease_.LeftNs(now), 0),
               .waiting_bytes = outbox_.queued_bytes(),
               .links_broken = links_broken_,
               .removed = membership_.removed(),
               .hands_over = hand_over_.begun(),
               .stream_version = stream_version_,
               .ended_map = end_.ended() ? end_.ended()->revision : 0};
  for (const auto& backup : backups_) {
    if (!backup->member) continue;
    const bool receives = backup->receives;
    (receives ? seen.receivers : seen.backups)
        .push_back({.node = backup->member->node,
                    .in_sync = !receives && configuration.IsInSync(*backup->member),
                    .linked = !backup->link->closing(),
                    .heard = !receives && lease_.IsHeard(backup->member->incarnation, now),
                    .completed = writer_.completed_lsn(backup->ring),
                    .applied = backup->applied,
                    .behind_bytes = writer_.unconsumed_bytes(backup->ring)});
  }
  return seen;
}

}  // namespace gannet
