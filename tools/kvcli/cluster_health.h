#ifndef GANNET_TOOLS_KVCLI_CLUSTER_HEALTH_H_
#define GANNET_TOOLS_KVCLI_CLUSTER_HEALTH_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/kvcli/cluster_state.h"

namespace gannet::kvcli {

// Whether a cluster serves, by what lies in etcd and what its members answered. etcd alone does not
// tell: it has who was in sync when somebody last changed that, also if all of them are dead.
// Pure: no I/O.

enum class Health : uint8_t {
  kOk,        // every group is served, and all its members are in sync
  kUnknown,   // members were not asked
  kDegraded,  // every group is served, but some have fewer copies than members
  kDown,      // a group is not served, or takes no writes
};
// Returns "ok", "unknown", "degraded" or "down".
std::string_view NameOf(Health health);

// What a member is now.
enum class MemberState : uint8_t {
  kUnknown,  // it was not asked
  kInSync,
  kJoining,
  kOut,       // it runs, and is neither
  kStarting,  // it prepares its memory, or starts again
  kSilent,    // no answer within the time
  kDead,      // nobody listens at its address
  kAbsent,    // it has not run yet
};
// Returns "unknown", "in_sync", "joining", "out", "starting", "silent", "dead" or "absent".
std::string_view NameOf(MemberState state);

MemberState StateOf(const ClusterState& state, const GroupConfig& config, const std::string& node);

struct GroupHealth {
  Health health = Health::kOk;
  std::vector<std::string> problems;  // sentences; the worst first
};
// `group`: one of the map's. etcd may have lost its entry.
GroupHealth HealthOf(const ClusterState& state, const std::string& group);
// Returns the worst of all groups'.
Health HealthOf(const ClusterState& state);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_CLUSTER_HEALTH_H_
