#include "common/cluster/cluster_map.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace gannet {

ClusterConfig FillPartitions(std::vector<std::string> groups) {
  std::ranges::sort(groups);
  GANNET_CHECK(!groups.empty() && groups.size() <= kGroupsMax &&
                   std::ranges::adjacent_find(groups) == groups.end(),
               "no groups of a cluster");
  ClusterConfig config = {.groups = std::move(groups), .partitions = {}};
  for (uint32_t partition = 0; partition < kPartitions; ++partition) {
    // Of equal hashes the first one, which is the same for each order of `groups`.
    const auto best = std::ranges::max_element(config.groups, {}, [&](const std::string& group) {
      return Xxh3(group.data(), group.size(), partition);
    });
    config.partitions.push_back(static_cast<uint16_t>(best - config.groups.begin()));
  }
  return config;
}

}  // namespace gannet
