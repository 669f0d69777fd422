#ifndef GANNET_TOOLS_KVCLI_PARTITION_BYTES_H_
#define GANNET_TOOLS_KVCLI_PARTITION_BYTES_H_

#include <gannet/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/kvcli/cluster_state.h"

namespace gannet::kvcli {

// Returns how many bytes of memory the items of each partition take, by a walk through the memory
// of each group's primary. The servers' CPUs take no part. What a group still has of partitions
// that are another's does not count. Blocks; calls tell() with a line for people now and then. The
// process runs at the lowest priority from then on.
//
//   FailedPrecondition: a group that has partitions has no primary. Others as Walker's.
absl::StatusOr<std::vector<uint64_t>> MeasurePartitions(
    const ClusterState& state, const Options& connect,
    const std::function<void(const std::string& line)>& tell);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_PARTITION_BYTES_H_
