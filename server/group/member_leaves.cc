// Member: how it leaves its group, when it is told to stop.

#include <algorithm>
#include <tuple>

#include "server/group/member.h"

namespace gannet {

// One that is silent at this moment may only be busy. The link to one that is dead breaks. So does
// that to the successor, once it is named.
bool Member::MayStepDown(const Seen& seen) {
  const auto may_follow = [](const Primary::Seen::Backup& it) { return it.in_sync && it.linked; };
  return seen.role == Role::kPrimary &&
         (seen.as_primary.hands_over || std::ranges::any_of(seen.as_primary.backups, may_follow));
}

Member::Leaving Member::Leave() {
  if (ended() || may_stop_.load(std::memory_order_relaxed)) return Leaving::kDone;
  leaves_.store(true, std::memory_order_relaxed);
  context_.server->WakeMember();
  return MayStepDown(Look()) ? Leaving::kHandsOver : Leaving::kAwaitsOthers;
}

// Whether the map gives the group any partition. One that was removed has none.
bool Member::HasPartitions() const {
  const SeenMap* const seen = context_.group.directory->Config();
  if (seen == nullptr) return true;
  const auto& [groups, partitions] = std::tie(seen->config.groups, seen->config.partitions);
  const auto found = std::ranges::find(groups, context_.group.name);
  return found != groups.end() && std::ranges::count(partitions, found - groups.begin()) > 0;
}

// One that has told the primary that it has all items waits until it knows whether it is in sync:
// the primary may stop, too, and hand over to it. One that joins has nothing yet. If the group has
// no other node, nobody else will ever have the items.
void Member::LeaveTurn(int64_t now) {
  if (primary_ != nullptr) {
    primary_->StepDown(now, "this server stops");
  } else {
    backup_->Leave(now);
  }
  const bool has_items = primary_ != nullptr || backup_->may_count();
  const bool has_others = context_.group.directory->terms().members.size() > 1;
  may_stop_.store(!has_items || !has_others || !HasPartitions(), std::memory_order_relaxed);
}

}  // namespace gannet
