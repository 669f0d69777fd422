// The steps of a batch, as the header draws them. No step goes on while the result of a
// transaction is unknown (PollTxn). A step that fails opens what was closed, and the batch begins
// again.

#include "server/group/move/partition_receiver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "glog/logging.h"

namespace gannet {
namespace {

constexpr int64_t kIdleNs = 100 * kNsPerMs;
constexpr int64_t kLookNs = kNsPerMs;
// Between two tries.
constexpr int64_t kAgainNsMin = 50 * kNsPerMs;
constexpr int64_t kAgainNsMax = 5 * kNsPerSecond;
constexpr int64_t kTxnAgainNs = 10 * kNsPerMs;
// An operator wishes more partitions than one transaction takes one after the other. When nothing
// came for so long, all are there.
constexpr int64_t kWishedNs = 250 * kNsPerMs;
// How much of a walk tells how long the rest will take.
constexpr double kWalkedMin = 1.0 / 16;
// With less of the stream to take, the partitions are closed.
constexpr uint64_t kBehindMax = 64 << 10;
// How often the giver is told that its leases have to stay short.
constexpr int64_t kTellAgainNs = MoveSource::kShortNs / 4;
// If the giver has not ended what is closed so long after its leases are over, it is opened again.
constexpr int64_t kEndNsMax = 5 * kNsPerSecond;

}  // namespace

PartitionReceiver::PartitionReceiver(const GroupContext& context, Writes* writes,
                                     MoveSourceMaker* sources)
    : context_(context),
      writes_(writes),
      sources_(sources),
      intake_(context, writes),
      dropper_(writes) {}

PartitionReceiver::~PartitionReceiver() = default;

PartitionIntake::Partitions PartitionReceiver::taking() const {
  PartitionIntake::Partitions taking;
  if (!batch_) return taking;
  for (const uint16_t partition : batch_->partitions) taking.set(partition);
  return taking;
}

void PartitionReceiver::Poll(BootTime now, const GroupRegister& own) {
  next_at_ = now + kIdleNs;
  PollSources(now);
  PollTxn(now);
  const SeenMap* const map = context_.group.map_store->Seen();
  const PartitionMoveWishes* const wishes = context_.group.directory->Moves();
  if (map == nullptr || wishes == nullptr || txn_) return;
  // A copy takes many Polls, and to look at all wishes takes longer than some of these.
  if (batch_ && step_ == Step::kCopies && !source_->copied() && now < look_at_) {
    return Soon(look_at_);
  }
  look_at_ = now + kLookNs;
  const MovesSeen seen = {.map = *map, .wishes = *wishes, .group = context_.group.name};
  wanted_ = CountWanted(seen);
  if (now < txn_at_) return Soon(txn_at_);
  if (batch_ && !Follow(seen, &*batch_)) EndBatch("the map or the wishes have changed", now);
  if (std::optional<MapTxn> end = EndTxn(seen)) return Send(*std::move(end));
  if (batch_) intake_.Keep(taking());
  if (const std::vector<uint16_t> left = LeftClosed(seen, batch_ ? &*batch_ : nullptr);
      !left.empty()) {
    LOG(INFO) << "opens " << left.size() << " partitions again, from " << left.front() << " on";
    return Send(ReopenTxn(seen, left));
  }
  if (!batch_) BeginBatch(seen, now);
  if (batch_) Work(seen, own, now);
}

void PartitionReceiver::PollSources(BootTime now) {
  for (const auto& retired : retired_) {
    retired->Poll(now);
    Soon(now + kLookNs);
  }
  std::erase_if(retired_, [](const auto& retired) { return retired->over(); });
  intake_.Settle();
  if (!source_) return;
  context_.server->Publish();
  source_->Poll(now);
  Soon(source_->next_at());
}

// A lost one has changed nothing, and none of its copies will: what made it lose does not come
// back. If it lost to its own copy, the map that was seen has that. If it lost to a newer map that
// was not seen yet, or to another register of the group, that is waited for.
void PartitionReceiver::PollTxn(BootTime now) {
  if (!txn_) return;
  if (txn_under_way_) {
    const auto result = context_.group.map_store->Poll();
    if (!result) return Soon(now + kLookNs);
    txn_under_way_ = false;
    txn_at_ = *result == MapStore::Result::kWon || SawNewerMap() ? now : now + kTxnAgainNs;
    if (*result != MapStore::Result::kUnknown) return txn_.reset();
  }
  if (SawNewerMap()) return txn_.reset();
  if (now < txn_at_) return Soon(txn_at_);
  context_.group.map_store->Txn(*txn_);
  txn_under_way_ = true;
}

bool PartitionReceiver::SawNewerMap() const {
  GANNET_CHECK(txn_.has_value(), "no transaction is compared with the map");
  const SeenMap* const map = context_.group.map_store->Seen();
  return map != nullptr && map->mod_revision > txn_->map_revision;
}

void PartitionReceiver::Send(MapTxn txn) {
  txn_ = std::move(txn);
  txn_under_way_ = true;
  context_.group.map_store->Txn(*txn_);
  Soon(BootTime());
}

void PartitionReceiver::Send(absl::StatusOr<MapTxn> txn) {
  if (txn.ok()) return Send(*std::move(txn));
  LOG(DFATAL) << "a map that was looked at cannot be changed: " << txn.status();
}

void PartitionReceiver::BeginBatch(const MovesSeen& seen, BootTime now) {
  std::optional<MoveBatch> next = NextBatch(seen);
  if (!next) return;
  // Wishes come and go. Those that came with an earlier batch are not waited for again.
  if (const int64_t newest = NewestWish(seen); newest > newest_wish_) {
    newest_wish_ = newest;
    wished_at_ = now;
  }
  const BootTime at = std::max(begin_at_, wished_at_ + kWishedNs);
  if (now < at) return Soon(at);
  batch_ = std::move(next);
  LOG(INFO) << "takes " << batch_->partitions.size() << " partitions, from "
            << batch_->partitions.front() << " on, of group " << batch_->giver;
  step_ = Step::kDrops;
  dropping_ = false;
  begun_at_ = now;
}

void PartitionReceiver::EndBatch(std::string_view why, BootTime now) {
  if (batch_->moved > 0) {
    LOG(INFO) << "has " << batch_->moved << " partitions more, of group " << batch_->giver << ": "
              << intake_.items() << " changes, " << intake_.bytes() << " bytes" << TimesText(now);
    trouble_.clear();
    again_ns_ = 0;
  } else {
    LOG(INFO) << "does not take the partitions of group " << batch_->giver << ": " << why;
  }
  LeaveBatch();
}

std::string PartitionReceiver::TimesText(BootTime now) const {
  const int64_t closed_ns = closed_at_ == BootTime() ? 0 : now - closed_at_;
  return absl::StrCat(" in ", (now - begun_at_) / kNsPerMs, " ms; copied after ",
                      (copied_at_ - begun_at_) / kNsPerMs, " ms, closed for ", closed_ns / kNsPerMs,
                      " ms");
}

void PartitionReceiver::LeaveBatch() {
  moved_ += batch_->moved;
  batch_.reset();
  if (!source_) return;
  source_->BeginEnd();
  retired_.push_back(std::move(source_));
}

void PartitionReceiver::BeginAgain(const absl::Status& why, BootTime now) {
  const std::string trouble(why.message());
  if (std::exchange(trouble_, trouble) != trouble) {
    LOG(WARNING) << "begins again to take partitions of group " << batch_->giver << ": " << trouble;
  }
  if (batch_->moved > 0) again_ns_ = 0;
  LeaveBatch();
  again_ns_ = std::clamp(2 * again_ns_, kAgainNsMin, kAgainNsMax);
  if (absl::IsResourceExhausted(why)) again_ns_ = kAgainNsMax;
  begin_at_ = now + again_ns_;
  Soon(now);
}

// Of what is taken nothing more is needed from the giver.
void PartitionReceiver::Work(const MovesSeen& seen, const GroupRegister& own, BootTime now) {
  const bool needs_source = step_ != Step::kDrops && !(step_ == Step::kEnds && taken_);
  if (needs_source && !source_->status().ok()) return BeginAgain(source_->status(), now);
  if (step_ != Step::kDrops && intake_.failed()) {
    return BeginAgain(absl::ResourceExhaustedError("the index has no slot for an item"), now);
  }
  switch (step_) {
    case Step::kDrops:
      return Drop(now);
    case Step::kCopies:
      return Copy(now);
    case Step::kCloses:
      return Close(seen, own, now);
    case Step::kEnds:
      return Give(seen, own, now);
  }
}

// What was decided before, of these partitions, has to be where the dropper finds it.
void PartitionReceiver::Drop(BootTime now) {
  if (now < begin_at_) return Soon(begin_at_);
  Soon(now);
  if (!dropping_) {
    dropping_ = true;
    drop_after_ = writes_->given();
    dropper_.Begin({});
  }
  context_.server->Publish();
  if (dropper_.partitions().none()) {
    intake_.Settle();
    if (writes_->published() < drop_after_ || !intake_.settled()) return Soon(now + kLookNs);
    dropper_.Begin(taking());
  }
  if (!dropper_.Step(context_.server->Time())) return;
  const std::optional<std::string> giver = context_.group.directory->PrimaryOf(batch_->giver);
  if (!giver) {
    return BeginAgain(absl::UnavailableError(absl::StrCat("the address of the primary of group ",
                                                          batch_->giver, " is not known")),
                      now);
  }
  intake_.Begin(taking());
  source_ = sources_->MakeSource(batch_->giver, *giver, now);
  step_ = Step::kCopies;
  walk_at_ = BootTime();
  told_at_ = now - MoveSource::kShortNs;  // never
  close_at_ = now;
  closed_at_ = BootTime();
}

// The giver's leases become short while the walk ends, so that nobody waits for that afterwards.
void PartitionReceiver::Copy(BootTime now) {
  if (walk_at_ == BootTime() && source_->walked() > 0) walk_at_ = now;
  if (IsSoonCopied(now)) TellClosing(now);
  if (!source_->copied() || source_->behind() > kBehindMax) return;
  copied_at_ = now;
  ended_.reset();
  taken_ = false;
  step_ = Step::kCloses;
  Soon(now);
}

// Whether the walk will be over within a lease if it goes on as it did.
bool PartitionReceiver::IsSoonCopied(BootTime now) const {
  const double walked = source_->walked();
  if (walked < kWalkedMin) return false;
  const double left_ns = static_cast<double>(now - walk_at_) * (1 - walked) / walked;
  return left_ns <= static_cast<double>(source_->lease_ns());
}

// If it could not tell for long, leases may be long again.
void PartitionReceiver::TellClosing(BootTime now) {
  Soon(now + kTellAgainNs);
  if (now - told_at_ < kTellAgainNs) return;
  source_->TellClosing();
  if (now - told_at_ >= MoveSource::kShortNs) close_at_ = now + source_->lease_ns();
  told_at_ = now;
}

void PartitionReceiver::Close(const MovesSeen& seen, const GroupRegister& own, BootTime now) {
  TellClosing(now);
  if (batch_->closed_at != 0) {
    closed_at_ = now;
    step_ = Step::kEnds;
    return Soon(now);
  }
  if (now < close_at_) return Soon(close_at_);
  if (source_->behind() > kBehindMax) return;
  batch_->closing = true;
  Send(CloseTxn(seen, *batch_, own.revision));
}

// The giver may have ended what was closed before, and is open or closed again.
void PartitionReceiver::Give(const MovesSeen& seen, const GroupRegister& own, BootTime now) {
  Soon(now + kLookNs);
  if (!taken_ && !TakeEnd()) {
    TellClosing(now);
    if (!IsLate(now)) return;
    return BeginAgain(absl::UnavailableError("the giver does not end what is closed"), now);
  }
  intake_.Settle();
  const bool committed = intake_.settled(taken_ticket_) && !intake_.failed();
  if (!committed) return;
  if (context_.server->Time() >= give_at_) return Send(GiveTxn(seen, *batch_, own.revision));
  if (IsLate(now)) BeginAgain(absl::UnavailableError("the giver's clock is much faster"), now);
}

bool PartitionReceiver::IsLate(BootTime now) const {
  return now - closed_at_ >= source_->lease_ns() + kEndNsMax;
}

bool PartitionReceiver::TakeEnd() {
  if (!ended_) {
    const std::optional<MoveEnded>& ended = source_->ended();
    if (!ended || ended->revision < batch_->closed_at) return false;
    ended_ = ended;
    source_->StopAt(ended->lsn);
  }
  if (!source_->HasUpTo(ended_->lsn) || source_->clock_behind_end() == ServerTime()) return false;
  // Somebody may have seen an item expire at the giver by that clock.
  give_at_ = intake_.clock().ToOwn(source_->clock_behind_end());
  if (intake_.TakeVersion(ended_->version_next) != ReplyStatus::kOk) return false;
  taken_ticket_ = intake_.last_ticket();
  taken_ = true;
  return true;
}

void PartitionReceiver::Arm(BootTime now) {
  if (source_) {
    source_->Arm(now);
    Soon(source_->next_at());
  }
  for (const auto& retired : retired_) retired->Arm(now);
}

void PartitionReceiver::Woken() {
  if (source_) source_->Woken();
  for (const auto& retired : retired_) retired->Woken();
}

void PartitionReceiver::AddFds(std::vector<int>* fds) const {
  if (source_) source_->AddFds(fds);
  for (const auto& retired : retired_) retired->AddFds(fds);
}

void PartitionReceiver::Tell(MoveProgress* progress) const {
  progress->wanted = wanted_;
  progress->moved = moved_ + (batch_ ? batch_->moved : 0);
  progress->trouble = trouble_;
  if (!batch_) return;
  constexpr const char* kSteps[] = {"drops what is left", "copies", "closes",
                                    "waits for the giver"};
  progress->step = kSteps[static_cast<size_t>(step_)];
  progress->giver = batch_->giver;
  progress->partitions = batch_->partitions.size();
  progress->items = intake_.items();
  progress->bytes = intake_.bytes();
  progress->walked = source_ ? source_->walked() : 0;
}

}  // namespace gannet
