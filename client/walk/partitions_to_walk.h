#ifndef GANNET_CLIENT_WALK_PARTITIONS_TO_WALK_H_
#define GANNET_CLIENT_WALK_PARTITIONS_TO_WALK_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "common/protocol/partition_map.h"

namespace gannet {

// The partitions of a cluster that a walk through all groups has not shown yet. Partitions may move
// meanwhile, so a group's memory may have items of a partition that it gave away and has not
// deleted, and of one that comes to it. A walk shows a key only at the group that owns it:
//
//   while (!left.done()) {
//     group = left.Begin();              // the next group with something that is left
//     walk through its memory; show an item if left.Shows(its key)
//     left.End();
//   }
//
// A newer map may come at any time (OnMap). A partition whose change differs by it is not shown any
// more by the walk through a group that is under way, and is left: it is shown again as a whole,
// at the group that owns it then. So each key that is there all the time is shown at least once;
// and once only, if its partition does not move while its group is walked through.
class PartitionsToWalk {
 public:
  using Partitions = std::bitset<kPartitions>;

  explicit PartitionsToWalk(PartitionMap map) : map_(std::move(map)) { left_.set(); }

  const PartitionMap& map() const { return map_; }
  // Takes a map, if it is newer.
  void OnMap(PartitionMap map) {
    if (map.revision < map_.revision) return;
    for (uint32_t i = 0; i < kPartitions; ++i) {
      if (map.ChangedAt(i) != map_.ChangedAt(i)) now_.reset(i);
    }
    map_ = std::move(map);
  }
  // All partitions are left again.
  void BeginAnew() { left_.set(), now_.reset(); }
  bool done() const { return left_.none(); }
  // The share of the partitions that are not left.
  double share() const {
    return static_cast<double>(kPartitions - left_.count()) / static_cast<double>(kPartitions);
  }

  // Begins with the first group that serves something of what is left. Returns its place in
  // map().groups; nullopt: nobody serves any of it now.
  std::optional<size_t> Begin() {
    for (size_t group = 0; group < map_.groups.size(); ++group) {
      if (BeginGroup(group)) return group;
    }
    return std::nullopt;
  }
  // Begins with this group. Returns whether it serves something of what is left.
  bool BeginGroup(size_t group) {
    for (uint32_t i = 0; i < kPartitions; ++i) {
      now_[i] = left_[i] && map_.partitions[i] == group && !map_.IsClosed(i);
    }
    return now_.any();
  }
  bool Shows(std::string_view key) const { return now_[PartitionOf(key)]; }
  // What the walk through the group shows still.
  const Partitions& now() const { return now_; }
  // The walk through the group is over.
  void End() {
    left_ &= ~now_;
    now_.reset();
  }
  // Whether each partition is served.
  bool all_served() const {
    for (uint32_t i = 0; i < kPartitions; ++i) {
      if (map_.IsClosed(i)) return false;
    }
    return true;
  }

 private:
  PartitionMap map_;
  Partitions left_;
  Partitions now_;  // of the group whose memory is walked through
};

}  // namespace gannet

#endif  // GANNET_CLIENT_WALK_PARTITIONS_TO_WALK_H_
