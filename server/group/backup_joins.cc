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

Backup::Outcome Backup::JoinTurn(int64_t now) {
  bool was_read = false;
  if (const auto answer = options_.config_store->Poll()) {
    reading_ = founding_ = false;
    was_read = answer->result != ConfigStore::Result::kUnknown;
    if (was_read) known_ = answer->now;
    // Otherwise it may be older than what the primary did with this member in between.
    was_read = was_read && !followed_since_read_;
  }
  if (const auto seen = options_.config_store->Seen(); seen && seen->revision > known_.revision) {
    known_ = *seen;
  }
  const GroupConfiguration& configuration = known_.configuration;
  if (configuration.primary == options_.self && !log_) {
    Tell(configuration.epoch == 1 ? "founds the group" : "begins the group anew");
    return Outcome::kLead;
  }
  if (log_ && configuration.IsInSync(options_.self)) {
    LOG(INFO) << "becomes a backup, in sync, of " << configuration.primary.node
              << ", primary of epoch " << configuration.epoch;
    takeover_.emplace(times_, options_.config_store, options_.self, known_, link_epoch_, heard_,
                      now);
    return BackupTurn(now);
  }
  if (link_ && !lost_ && now - heard_ <= 2 * times_.grace_ns()) {
    followed_since_read_ = true;
    if (link_->open() && !hello_sent_) SendHello(configuration.epoch);
    return welcomed_ && !ready_ ? CopyItems(now) : Outcome::kGoesOn;
  }
  if (was_read) return OnRegister(known_, now);
  if (!reading_ && !founding_ && now >= try_at_) {
    options_.config_store->Read();
    reading_ = true;
    followed_since_read_ = false;
  }
  return Outcome::kGoesOn;
}

Backup::Outcome Backup::CopyItems(int64_t now) {
  if (copied_) return TellThatItIsReady(now);
  if (!joiner_) {
    auto joiner = Joiner::Begin({.device = options_.device,
                                 .primary = primary_at_,
                                 .keys = options_.keys,
                                 .target = &join_target_,
                                 .wall_ms = options_.now_ms,
                                 .clock_ns = options_.clock,
                                 .now_ns = now,
                                 .idle = options_.idle});
    if (!joiner.ok()) return End(std::string(joiner.status().message()));
    joiner_ = *std::move(joiner);
    applier_.OnChange([this](const Change& change) {
      if (joiner_) joiner_->OnApplied(change);
    });
  }
  // What was decided and is not published yet is in neither.
  if (published_) joiner_->BeginWalk();
  switch (joiner_->Poll(now)) {
    case Joiner::Step::kGoesOn:
      return Outcome::kGoesOn;
    case Joiner::Step::kFailed:
      return End(std::string(joiner_->status().message()));
    case Joiner::Step::kDone:
      break;
  }
  LOG(INFO) << "copied " << joiner_->items() << " items, " << joiner_->bytes() << " bytes";
  applier_.OnVersion(joiner_->version_next());
  joiner_.reset();
  applier_.OnChange(nullptr);
  copied_ = true;
  return TellThatItIsReady(now);
}

Backup::Outcome Backup::TellThatItIsReady(int64_t now) {
  next_ns_ = std::min(next_ns_, now + kLookNs);
  if (options_.may_be_ready && !options_.may_be_ready()) return Outcome::kGoesOn;
  ready_ = true;
  ReplicaReady ready = NewReplicaReady();
  ready.epoch = link_epoch_;
  link_->Send(ready);
  return Outcome::kGoesOn;
}

// It was read after the link was gone, so it is known whether this member is in sync.
Backup::Outcome Backup::OnRegister(const GroupRegister& known, int64_t now) {
  try_at_ = now + kRetryNs;
  if (link_) {
    if (log_) return End("the link to the primary was lost before all items were there");
    Retire();
    return Outcome::kGoesOn;
  }
  const GroupConfiguration& configuration = known.configuration;
  if (configuration.epoch == 0) {
    Found(known);
    return Outcome::kGoesOn;
  }
  if (TryToBeginAgain(known, now)) return Outcome::kGoesOn;
  if (!retired_) Connect(configuration.primary, now);
  return Outcome::kGoesOn;
}

// The history is the same in all tries, as each of them may still win.
bool Backup::TryToBeginAgain(const GroupRegister& known, int64_t now) {
  if (alone_since_ == 0) alone_since_ = now;
  if (options_.kept_at.empty() || claim_failed_) return false;
  const RestartPlan plan =
      PlanRestart(known.configuration, options_.directory->terms(),
                  [this](std::string_view node) { return options_.directory->NodeOf(node); });
  if (plan.leader != options_.self) {
    if (!plan.awaits.empty() && now - alone_since_ > kAloneNs) {
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
  if (next_history_ == 0) next_history_ = NonzeroRandom(options_.random);
  const uint64_t epoch = known.configuration.epoch + 1;
  if (claimed_epoch_ != epoch) {
    LOG(WARNING) << "all who were in sync in epoch " << known.configuration.epoch
                 << " are gone, and have come back. Begins the group again with what "
                 << options_.kept_at << " has";
    if (const absl::Status claimed = options_.claim(next_history_, epoch); !claimed.ok()) {
      claim_failed_ = true;
      LOG(ERROR) << "cannot begin the group again: " << claimed.message();
      return false;
    }
    claimed_epoch_ = epoch;
  }
  founding_ = true;
  options_.config_store->BeginAgain(
      known.revision, {.epoch = epoch, .primary = options_.self, .in_sync = {options_.self}},
      next_history_, plan.others);
  return true;
}

// Of those that have items of the same history as this process.
std::string Backup::BestFormerDisk() const {
  const std::optional<NodeSeen> own = options_.directory->NodeOf(options_.self.node);
  if (!own || !own->kept) return options_.self.node;
  return BestDisk(options_.directory->terms().members, own->kept->history,
                  [this](std::string_view node) { return options_.directory->NodeOf(node); });
}

// A group that nobody has founded is empty. So the items of an earlier run do not belong to it,
// unless an operator says so.
void Backup::Found(const GroupRegister& known) {
  if (!options_.kept_at.empty()) {
    return Tell(absl::StrCat(
        "does not found the group, because ", options_.kept_at,
        " has items of an earlier run. To begin with the best disk that is known when all members "
        "have come back: kvcli cluster force GROUP --from=",
        BestFormerDisk(), " --lose-data. To begin empty: remove that directory, and start again"));
  }
  if (const auto nodes = options_.directory->WithItems(); !nodes.empty()) {
    return Tell(absl::StrCat(
        "does not found the group, because ", absl::StrJoin(nodes, ", "),
        " said that it had the group's items when etcd had lost the group. kvcli cluster status "
        "says what to do"));
  }
  founding_ = true;
  options_.config_store->Txn(known.revision,
                             {.epoch = 1, .primary = options_.self, .in_sync = {options_.self}});
}

}  // namespace gannet
