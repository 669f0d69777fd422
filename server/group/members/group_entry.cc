// How a process comes into its group while the register does not count it in sync. To found the
// group and to begin it again are transactions like any other: who loses sees the winner at the
// next read, and joins it.

#include "server/group/members/group_entry.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "glog/logging.h"
#include "server/group/replica/restart.h"

namespace gannet {
namespace {

// A member that joins finds a primary sooner, if there is one. Then it tells what it waits for.
constexpr int64_t kAloneNs = 2 * kNsPerSecond;

// Of those that have items of the same history as this process.
std::string BestFormerDisk(const GroupContext& context) {
  const std::optional<NodeSeen> own = context.group.directory->NodeOf(context.self.node);
  if (!own || !own->kept) return context.self.node;
  return BestDisk(context.group.directory->terms().members, own->kept->history,
                  *context.group.directory);
}

}  // namespace

GroupEntry::GroupEntry(const GroupContext& context, LineLog* log)
    : context_(context),
      log_(log),
      kept_at_(context.disk != nullptr ? context.disk->former_path() : "") {}

bool GroupEntry::Poll() {
  bool was_read = false;
  if (const auto answer = context_.group.config_store->Poll()) {
    const bool was_alone = std::exchange(asked_, Asked::kNothing) == Asked::kNow;
    if (answer->result != ConfigStore::Result::kUnknown) {
      known_ = answer->now;
      // Otherwise it may be older than what the primary did with this member in between.
      was_read = was_alone;
    }
  }
  if (const auto seen = context_.group.config_store->Seen();
      seen && seen->revision > known_.revision) {
    known_ = *seen;
  }
  return was_read;
}

void GroupEntry::OnLink() {
  if (asked_ == Asked::kNow) asked_ = Asked::kBeforeALink;
}

void GroupEntry::AskIfDue(BootTime now) {
  if (asked_ != Asked::kNothing || now < ask_at_) return;
  context_.group.config_store->Read();
  asked_ = Asked::kNow;
}

bool GroupEntry::TryToLead(BootTime now) {
  if (known_.configuration.epoch != 0) return TryToBeginAgain(now);
  Found();
  return true;
}

bool GroupEntry::TryToBeginAgain(BootTime now) {
  if (search_.alone_since == BootTime()) search_.alone_since = now;
  if (kept_at_.empty() || search_.claim_failed) return false;
  const GroupTerms terms = context_.group.directory->terms();
  const RestartPlan plan = PlanRestart(known_.configuration, terms, *context_.group.directory);
  if (plan.leader != context_.self) {
    if (!plan.awaits.empty() && now - search_.alone_since > kAloneNs) {
      log_->Add(absl::StrCat("does not begin the group again with what disks have: ", plan.awaits,
                             ". If that does not change, begin with the disk that is best of those "
                             "that are known",
                             plan.best.empty() ? ": kvcli cluster status shows them"
                                               : absl::StrCat(", that of ", plan.best,
                                                              ": kvcli cluster force GROUP --from=",
                                                              plan.best, " --lose-data")));
    }
    return false;
  }
  if (search_.history == 0) search_.history = context_.random->NextNonzero();
  const uint64_t epoch = known_.configuration.epoch + 1;
  if (search_.claimed_epoch != epoch) {
    LOG(WARNING) << "all who were in sync in epoch " << known_.configuration.epoch
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
      known_.revision, {.epoch = epoch, .primary = context_.self, .in_sync = {context_.self}},
      search_.history, plan.others);
  return true;
}

// A group that nobody has founded is empty. So the items of an earlier run do not belong to it,
// unless an operator says so.
void GroupEntry::Found() {
  if (!kept_at_.empty()) {
    return log_->Add(absl::StrCat(
        "does not found the group, because ", kept_at_,
        " has items of an earlier run. To begin with the best disk that is known when all members "
        "have come back: kvcli cluster force GROUP --from=",
        BestFormerDisk(context_),
        " --lose-data. To begin empty: remove that directory, and start again"));
  }
  if (const auto nodes = context_.group.directory->WithItems(); !nodes.empty()) {
    return log_->Add(absl::StrCat(
        "does not found the group, because ", absl::StrJoin(nodes, ", "),
        " said that it had the group's items when etcd had lost the group. kvcli cluster status "
        "says what to do"));
  }
  asked_ = Asked::kNow;
  context_.group.config_store->Txn(
      known_.revision, {.epoch = 1, .primary = context_.self, .in_sync = {context_.self}});
}

}  // namespace gannet
