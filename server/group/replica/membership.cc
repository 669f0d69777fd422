// Builds the next configuration: without who is silent, with who joins, with a successor. While a
// result is unknown both configurations count, so the lease and the commits rest on everybody who
// may be in sync.

#include "server/group/replica/membership.h"

#include <algorithm>

#include "common/base/check.h"

namespace gannet {

Membership::Membership(ConfigStore* config_store, PrimaryLease* lease, Commit* commit,
                       const GroupMember& self, const GroupRegister& known, BootTime now)
    : config_store_(config_store), lease_(lease), commit_(commit), self_(self), known_(known) {
  GANNET_CHECK(known.configuration.primary == self, "somebody else is primary");
  Recount(now);
}

void Membership::Recount(BootTime now) {
  std::set<uint64_t> wanted;
  const auto add = [&](const GroupConfiguration& configuration) {
    for (const GroupMember& member : configuration.in_sync) {
      if (member != self_) wanted.insert(member.incarnation);
    }
  };
  add(known_.configuration);
  for (const GroupConfiguration& configuration : may_win_) add(configuration);
  for (const auto& [incarnation, joiner] : joiners_) wanted.insert(incarnation);
  for (const uint64_t incarnation : wanted) {
    if (!counted_.insert(incarnation).second) continue;
    lease_->Count(incarnation, now);
    commit_->Count(incarnation, 0);
  }
  std::erase_if(counted_, [&](uint64_t incarnation) {
    if (wanted.contains(incarnation)) return false;
    lease_->Uncount(incarnation);
    commit_->Uncount(incarnation);
    return true;
  });
}

void Membership::Join(const GroupMember& joiner, uint64_t completed, BootTime now) {
  joiners_[joiner.incarnation] = joiner;
  Recount(now);
  commit_->OnCompleted(joiner.incarnation, completed);
}

void Membership::OnBroken(const GroupMember& member, BootTime now) {
  lease_->OnBroken(member.incarnation);
  // A transaction that is under way may still add it. Then it stays counted.
  if (joiners_.erase(member.incarnation) > 0) Recount(now);
}

bool Membership::MayCommit() const {
  return !deposed_ && std::ranges::all_of(may_win_, [this](const GroupConfiguration& it) {
    return it.primary == self_;
  });
}

size_t Membership::copies() const {
  size_t least = known_.configuration.in_sync.size();
  for (const GroupConfiguration& it : may_win_) {
    if (it.primary == self_) least = std::min(least, it.in_sync.size());
  }
  return least;
}

void Membership::Poll(BootTime now) {
  if (deposed_) return;
  if (const auto answer = config_store_->Poll()) OnAnswer(*answer, now);
  if (config_store_->SeesNewer(known_.revision)) Adopt(*config_store_->Seen(), now);
  if (deposed_ || busy_) return;
  const ConfigStore::Standing standing = config_store_->standing();
  if (standing == ConfigStore::Standing::kLost || standing == ConfigStore::Standing::kUnfounded) {
    return FollowLoss(standing == ConfigStore::Standing::kUnfounded, now);
  }
  lost_since_.reset();
  const std::optional<GroupConfiguration> wanted = Wanted(now);
  if (!wanted) return;
  // Counted from now on, and it may have won from now on.
  if (std::ranges::find(may_win_, *wanted) == may_win_.end()) may_win_.push_back(*wanted);
  Recount(now);
  busy_ = true;
  config_store_->Txn(known_.revision, *wanted);
}

bool Membership::MayAdopt() const {
  return lost_since_ && MayCommit() && lease_->AnsweredSince(*lost_since_);
}

// What was sent before cannot win any more: it compares with a revision that is gone. But it may
// have won before the loss. Whoever was added or removed by it is counted still. A member that
// fenced this primary before the loss, as it does before it takes over, has answered no beacon
// since.
void Membership::FollowLoss(bool unfounded, BootTime now) {
  if (!lost_since_) lost_since_ = now;
  if (MayCommit()) successor_.reset();  // it can be named no more
  if (!unfounded || !MayAdopt()) return;
  busy_ = true;
  config_store_->Adopt(known_.configuration);
}

void Membership::OnAnswer(const ConfigStore::Answer& answer, BootTime now) {
  busy_ = false;
  // Until the revision has changed, it may still win: it stays in may_win_.
  if (answer.result != ConfigStore::Result::kUnknown) Adopt(answer.now, now);
}

void Membership::Adopt(const GroupRegister& now_known, BootTime now) {
  if (now_known.revision <= known_.revision) return;
  if (now_known.configuration.primary == self_) {
    removed_ += static_cast<uint64_t>(std::ranges::count_if(
        known_.configuration.in_sync,
        [&](const GroupMember& member) { return !now_known.configuration.IsInSync(member); }));
  }
  known_ = now_known;
  // Whatever was sent before compares with a revision that is gone.
  may_win_.clear();
  if (known_.configuration.primary != self_) {
    deposed_ = true;
    return;
  }
  for (const GroupMember& member : known_.configuration.in_sync) {
    joiners_.erase(member.incarnation);
  }
  Recount(now);
}

// A node is in sync once. Its former process may still be: one that has not connected to this
// primary counts as silent only later. It is removed first.
//
// The lease counts joiners. So while it is valid, the joiner has answered a beacon that is younger
// than L, and this primary's clock has not yet been L ahead of what that beacon said. A joiner that
// was stopped knows an older clock only. If it took over, items that have expired would come back.
std::optional<GroupConfiguration> Membership::WithJoiner(BootTime now) const {
  if (!lease_->Valid(now)) return std::nullopt;
  for (const auto& [incarnation, joiner] : joiners_) {
    const auto is_former = [&now = joiner](const GroupMember& it) { return it.node == now.node; };
    if (std::ranges::any_of(known_.configuration.in_sync, is_former)) continue;
    if (commit_->HasAllCommitted(incarnation)) return known_.configuration.With(joiner);
  }
  return std::nullopt;
}

std::optional<GroupConfiguration> Membership::Wanted(BootTime now) {
  const GroupConfiguration& configuration = known_.configuration;
  // One that is not in sync is just not counted any more.
  const size_t left =
      std::erase_if(joiners_, [&](const auto& it) { return !lease_->IsHeard(it.first, now); });
  if (left > 0) Recount(now);

  const std::vector<uint64_t> silent = lease_->Silent(now);
  GroupConfiguration without = configuration;
  std::erase_if(without.in_sync, [&](const GroupMember& member) {
    return member != self_ && std::ranges::find(silent, member.incarnation) != silent.end();
  });
  if (successor_ &&
      (!without.IsInSync(*successor_) || !lease_->IsHeard(successor_->incarnation, now))) {
    successor_.reset();
  }
  if (successor_ && lease_->HasAnsweredSince(successor_->incarnation, named_at_)) {
    return configuration.Under(*successor_);
  }
  if (without != configuration) return without;
  if (const auto with = WithJoiner(now)) return with;
  const bool doubted = config_store_->standing() == ConfigStore::Standing::kDoubted;
  if (!may_win_.empty() || doubted) return configuration;
  return std::nullopt;
}

}  // namespace gannet
