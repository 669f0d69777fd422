#ifndef GANNET_SERVER_GROUP_REPLICA_REGISTER_H_
#define GANNET_SERVER_GROUP_REPLICA_REGISTER_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/protocol/group_member.h"

namespace gannet {

// What the register (etcd) says about a group: who leads it, and who has its items (docs/group.md,
// "Who is in sync").

struct GroupConfiguration {
  uint64_t epoch = 0;
  GroupMember primary;
  // R. The primary is in it. The others try to take over in this order.
  std::vector<GroupMember> in_sync;
  friend bool operator==(const GroupConfiguration&, const GroupConfiguration&) = default;

  bool IsInSync(const GroupMember& member) const {
    return std::ranges::find(in_sync, member) != in_sync.end();
  }
  // Returns how many backups try to take over before `backup`.
  uint32_t OrderOf(const GroupMember& backup) const {
    uint32_t order = 0;
    for (const GroupMember& member : in_sync) {
      if (member == backup) break;
      if (member != primary) ++order;
    }
    return order;
  }
  GroupConfiguration With(const GroupMember& joiner) const {
    GroupConfiguration changed = *this;
    changed.in_sync.push_back(joiner);
    return changed;
  }
  GroupConfiguration Without(const GroupMember& member) const {
    GroupConfiguration changed = *this;
    std::erase(changed.in_sync, member);
    return changed;
  }
  // The next epoch, under another primary. The present one is not in R any more.
  GroupConfiguration Under(const GroupMember& successor) const {
    GroupConfiguration changed = Without(primary);
    ++changed.epoch;
    changed.primary = successor;
    return changed;
  }
};

// What an operator sets for a group.
struct GroupTerms {
  uint64_t history = 0;     // names the group's items. Another one: items were lost
  uint32_t lease_ms = 600;  // of the primary
  uint32_t min_copies = 1;  // with fewer in sync, no write is taken
  uint64_t ring_bytes = 16 << 20;
  std::vector<std::string> members;  // nodes that may be in sync
  friend bool operator==(const GroupTerms&, const GroupTerms&) = default;
};

// The register with its revision, which grows with each change.
struct GroupRegister {
  uint64_t revision = 0;
  GroupConfiguration configuration;
  friend bool operator==(const GroupRegister&, const GroupRegister&) = default;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_REGISTER_H_
