#ifndef GANNET_COMMON_CLUSTER_MOVE_PLAN_H_
#define GANNET_COMMON_CLUSTER_MOVE_PLAN_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_config.h"

namespace gannet {

// Which partitions to move to which group (docs/partitions.md, "Plans"). Pure: it asks nobody and
// changes nothing.

struct PartitionMove {
  uint16_t partition = 0;
  uint16_t from = 0;  // places in ClusterConfig::groups
  uint16_t to = 0;

  bool operator==(const PartitionMove&) const = default;
};

// A group counts as even if it has between 1 - 1/20 and 1 + 1/20 of the groups' mean.
inline constexpr uint64_t kEvenWithin = 20;

// Returns moves after which all groups are even, and as few as it finds: it takes the largest
// partition that still fits from the group that has most, for the group that has least. A partition
// moves at most once. Closed partitions are under way elsewhere, and stay. If partitions are so
// large that groups cannot be even, the plan ends where no move helps.
//
// `bytes`: of each partition, kPartitions of them. Partitions without items count a little, so an
// empty cluster is made even by their number.
std::vector<PartitionMove> PlanBalance(const ClusterConfig& map, std::span<const uint64_t> bytes);

// Returns moves after which `group` has no partition. Only these partitions move, the largest ones
// first, each to the group that has least by then.
//   InvalidArgument: there is no such group.
//   FailedPrecondition: it is the only one, or some of its partitions are closed.
absl::StatusOr<std::vector<PartitionMove>> PlanDrain(const ClusterConfig& map,
                                                     std::string_view group,
                                                     std::span<const uint64_t> bytes);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_MOVE_PLAN_H_
