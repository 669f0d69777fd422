#include "server/group/replica/commit.h"

#include <algorithm>

namespace gannet {

void Commit::OnCompleted(uint64_t backup, uint64_t lsn) {
  const auto it = completed_.find(backup);
  if (it != completed_.end()) it->second = std::max(it->second, lsn);
}

bool Commit::HasAllCommitted(uint64_t backup) const {
  const auto it = completed_.find(backup);
  return it != completed_.end() && it->second >= committed_;
}

uint64_t Commit::Advance(uint64_t end, const PrimaryLease& lease, BootTime now) {
  if (!lease.Valid(now)) return committed_;
  uint64_t least = end;
  for (const auto& [backup, completed] : completed_) least = std::min(least, completed);
  committed_ = std::max(committed_, least);
  return committed_;
}

}  // namespace gannet
