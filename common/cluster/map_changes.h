#ifndef GANNET_COMMON_CLUSTER_MAP_CHANGES_H_
#define GANNET_COMMON_CLUSTER_MAP_CHANGES_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_config.h"

namespace gannet {

// The changes of a cluster's map that moves of partitions are made of (docs/partitions.md, "A
// move"). Each takes the map that was read, and returns what a transaction writes that compares the
// mod_revision of what was read. Nothing else may change a map.
//
// `partitions` are numbers below kPartitions, in any order, and at least one.
//   InvalidArgument: there is no such group or partition.
//   FailedPrecondition: the map is not one in which this may be done; the text says why.

// Whether nobody serves the partition now.
bool IsClosed(const ClusterConfig& map, uint16_t partition);

// Step 3. The partitions stay with their group, but nobody serves them.
// REQUIRES (FailedPrecondition): all are open, and `giver` has them.
absl::StatusOr<ClusterConfig> ClosePartitions(ClusterConfig map, std::string_view giver,
                                              std::span<const uint16_t> partitions);
// Step 5. `receiver` has them, and serves them.
// REQUIRES (FailedPrecondition): all are closed, since revision `closed_at`: the receiver has what
// was written until then.
absl::StatusOr<ClusterConfig> GivePartitions(ClusterConfig map, std::string_view receiver,
                                             std::span<const uint16_t> partitions,
                                             uint64_t closed_at);
// A move is given up. The group that has them serves them again.
// REQUIRES (FailedPrecondition): all are closed.
absl::StatusOr<ClusterConfig> ReopenPartitions(ClusterConfig map,
                                               std::span<const uint16_t> partitions);
// A group joins the cluster. It has no partition yet.
// REQUIRES (FailedPrecondition): there is no group of this name.
absl::StatusOr<ClusterConfig> AddGroup(ClusterConfig map, std::string_view group);
// A group leaves the cluster.
// REQUIRES (FailedPrecondition): it has no partition.
absl::StatusOr<ClusterConfig> RemoveGroup(ClusterConfig map, std::string_view group);

// Returns OK if changes of these kinds can have made `after` of `before`, any number of them:
// others make them, too, and who watches may miss some. What breaks this was not written by Gannet,
// or is older. To obey it would give keys to a group that does not have their items.
//   FailedPrecondition: they cannot; the text says why.
absl::Status CheckFollows(const ClusterConfig& before, const ClusterConfig& after);

}  // namespace gannet

#endif  // GANNET_COMMON_CLUSTER_MAP_CHANGES_H_
