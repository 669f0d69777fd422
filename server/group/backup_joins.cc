// Backup: what it does before it is in sync.

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/nonzero_random.h"
#include "glog/logging.h"
#include "server/group/backup.h"
#include "server/replica/restart.h"

namespace gannet {
namespace {

// A member that joins finds a primary sooner, if there is one. Then it tells what it waits for.
constexpr int64_t kAloneNs = 2 * kNsPerSecond;

}  // namespace

bool Backup::TakeAnswer() {
  const auto answer = context_.group.config_store->Poll();
  if (!answer) return false;
  const bool was_alone = std::exchange(asked_, Asked::kNothing) == Asked::kNow;
  if (answer->result == ConfigStore::Result::kUnknown) return false;
  known_ = answer->now;
  // Otherwise it may be older than what the primary did with this member in between.
  return was_alone;
}

void Backup::JoinTurn(int64_t now) {
  const bool was_read = TakeAnswer();
  if (const auto seen = context_.group.config_store->Seen();
      seen && seen->revision > known_.revision) {
    known_ = *seen;
  }
  const GroupConfiguration& configuration = known_.configuration;
  const bool seeks = state_.now() == BackupState::kSeeks;
  if (seeks && configuration.primary == context_.self) return To(BackupState::kLeads);
  if (!seeks && configuration.IsInSync(context_.self)) {
    To(BackupState::kInSync);
    takeover_.emplace(times_, context_.group.config_store, context_.self, known_, link_epoch_,
                      heard_, now);
    return BackupTurn(now);
  }
  if (link_ && !link_->lost && now - heard_ <= 2 * times_.grace_ns()) {
    if (asked_ == Asked::kNow) asked_ = Asked::kBeforeALink;
    if (link_->end->open() && !link_->end->said_hello()) SendHello(configuration.epoch);
    if (!seeks) CopyItems(now);
    return;
  }
  if (was_read) return OnRegister(known_, now);
  if (asked_ == Asked::kNothing && now >= try_at_) {
    context_.group.config_store->Read();
    asked_ = Asked::kNow;
  }
}

// The walk's filter hears of all that the stream brings, so the joiner is there when that begins.
void Backup::BeginToFollow(const ReplicaWelcome& welcome, int64_t now) {
  log_.emplace(welcome.first_lsn);
  history_ = welcome.history;
  context_.server->FollowClock(welcome.clock_ms);
  auto joiner = Joiner::Begin({.device = context_.device,
                               .primary = link_->at,
                               .keys = keys_,
                               .target = &join_target_,
                               .wall_ms = context_.now_ms,
                               .clock_ns = context_.clock,
                               .now_ns = now,
                               .idle = context_.idle});
  if (!joiner.ok()) return End(std::string(joiner.status().message()));
  join_.emplace(Join{.begins = welcome.first_lsn, .joiner = *std::move(joiner)});
  applier_.OnChange([this](const Change& change) { join_->joiner->OnApplied(change); });
  To(BackupState::kFollows);
}

void Backup::CopyItems(int64_t now) {
  if (state_.now() == BackupState::kReady) return;
  if (state_.now() == BackupState::kCopied) return TellThatItIsReady(now);
  Joiner& joiner = *join_->joiner;
  // What was decided and is not published yet is in neither.
  if (state_.now() == BackupState::kCopies) joiner.BeginWalk();
  switch (joiner.Poll(now)) {
    case Joiner::Step::kGoesOn:
      return;
    case Joiner::Step::kFailed:
      return End(std::string(joiner.status().message()));
    case Joiner::Step::kDone:
      break;
  }
  applier_.OnVersion(joiner.version_next());
  To(BackupState::kCopied);
  TellThatItIsReady(now);
}

void Backup::TellThatItIsReady(int64_t now) {
  next_ns_ = std::min(next_ns_, now + kLookNs);
  if (!IsKept()) return;
  To(BackupState::kReady);
  ReplicaReady ready = NewReplicaReady();
  ready.epoch = link_epoch_;
  link_->end->Send(ready);
}

bool Backup::IsKept() {
  MemberDisk* const disk = context_.disk;
  if (disk == nullptr || !disk->always()) return true;
  if (!disk->begun()) disk->Begin(context_.group.directory->terms().history, 0);
  return disk->whole();
}

// It was read after the link was gone, so it is known whether this member is in sync.
void Backup::OnRegister(const GroupRegister& known, int64_t now) {
  try_at_ = now + kRetryNs;
  if (state_.now() != BackupState::kSeeks) {
    return End("the link to the primary was lost before all items were there");
  }
  if (link_) return Retire();
  if (known.configuration.epoch == 0) return Found(known);
  if (TryToBeginAgain(known, now)) return;
  if (!retired_) Connect(known.configuration.primary, now);
}

bool Backup::TryToBeginAgain(const GroupRegister& known, int64_t now) {
  if (search_.alone_since == 0) search_.alone_since = now;
  if (kept_at_.empty() || search_.claim_failed) return false;
  const GroupTerms terms = context_.group.directory->terms();
  const RestartPlan plan = PlanRestart(known.configuration, terms, [this](std::string_view node) {
    return context_.group.directory->NodeOf(node);
  });
  if (plan.leader != context_.self) {
    if (!plan.awaits.empty() && now - search_.alone_since > kAloneNs) {
      Tell(absl::StrCat("does not begin the group again with what disks have: ", plan.awaits,
                        ". If that does not change, begin with the disk that is best of those "
                        "that are known",
                        plan.best.empty() ? ": kvcli cluster status shows them"
                                          : absl::StrCat(", that of ", plan.best,
                                                         ": kvcli cluster force GROUP --from=",
                                                         plan.best, " --lose-data")));
    }
    return false;
  }
  if (search_.history == 0) search_.history = NonzeroRandom(context_.random);
  const uint64_t epoch = known.configuration.epoch + 1;
  if (search_.claimed_epoch != epoch) {
    LOG(WARNING) << "all who were in sync in epoch " << known.configuration.epoch
                 << " are gone, and have come back. Begins the group again with what " << kept_at_
                 << " has";
    if (const absl::Status claimed = context_.disk->Claim(terms.history, search_.history, epoch);
        !claimed.ok()) {
      search_.claim_failed = true;
      LOG(ERROR) << "cannot begin the group again: " << claimed.message();
      return false;
    }
    search_.claimed_epoch = epoch;
  }
  asked_ = Asked::kNow;
  context_.group.config_store->BeginAgain(
      known.revision, {.epoch = epoch, .primary = context_.self, .in_sync = {context_.self}},
      search_.history, plan.others);
  return true;
}

// Of those that have items of the same history as this process.
std::string Backup::BestFormerDisk() const {
  const std::optional<NodeSeen> own = context_.group.directory->NodeOf(context_.self.node);
  if (!own || !own->kept) return context_.self.node;
  return BestDisk(context_.group.directory->terms().members, own->kept->history,
                  [this](std::string_view node) { return context_.group.directory->NodeOf(node); });
}

// A group that nobody has founded is empty. So the items of an earlier run do not belong to it,
// unless an operator says so.
void Backup::Found(const GroupRegister& known) {
  if (!kept_at_.empty()) {
    return Tell(absl::StrCat(
        "does not found the group, because ", kept_at_,
        " has items of an earlier run. To begin with the best disk that is known when all members "
        "have come back: kvcli cluster force GROUP --from=",
        BestFormerDisk(), " --lose-data. To begin empty: remove that directory, and start again"));
  }
  if (const auto nodes = context_.group.directory->WithItems(); !nodes.empty()) {
    return Tell(absl::StrCat(
        "does not found the group, because ", absl::StrJoin(nodes, ", "),
        " said that it had the group's items when etcd had lost the group. kvcli cluster status "
        "says what to do"));
  }
  asked_ = Asked::kNow;
  context_.group.config_store->Txn(
      known.revision, {.epoch = 1, .primary = context_.self, .in_sync = {context_.self}});
}

}  // namespace gannet
