#ifndef GANNET_SERVER_GROUP_REPLICA_SERVED_PARTITIONS_H_
#define GANNET_SERVER_GROUP_REPLICA_SERVED_PARTITIONS_H_

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/protocol/partition_map.h"

namespace gannet {

// What a map says of one group (docs/partitions.md).
struct GroupPartitions {
  uint64_t revision = 0;              // the map's
  uint64_t lost = 0;                  // the revision at which the group last closed a partition
  bool alone = true;                  // it is the only group, and has all keys
  std::bitset<kPartitions> served{};  // those that it has, without the closed ones
  // At which revision each was changed last, as in PartitionMap. Empty: none was.
  std::vector<uint64_t> changed;

  bool operator==(const GroupPartitions&) const = default;
};

// The partitions that this process's group serves, for those who answer clients. The member's own
// thread sets them; until it does, all are served.
//
// A request that is being served while they change may count as before or as after. A worker reads
// revision() when it begins a Poll, and then all else: so once it says that it has begun one by a
// map, it decides nothing by older ones (PartitionEnd). No fence is needed for that: it says what
// it has seen, and nobody concludes anything from what it has not said yet.
//
// Thread safe.
class ServedPartitions {
 public:
  // Whether all keys are served, so that nobody needs to look at a key. Relaxed, as all below: see
  // above.
  bool all() const { return all_.load(std::memory_order_relaxed); }
  bool Serves(std::string_view key) const { return all() || IsServed(PartitionOf(key)); }
  bool ServesPartition(uint32_t partition) const { return all() || IsServed(partition); }
  // The same for who found that not all() are served.
  bool IsServed(uint32_t partition) const {
    return served_[partition].load(std::memory_order_relaxed);
  }
  // Returns at which revision the partition was changed last. 0: never.
  uint64_t ChangedAt(uint32_t partition) const {
    return changed_[partition].load(std::memory_order_relaxed);
  }
  // The revision of the map that they are of. Acquire, with the release of Set, which stores it
  // last: what is read after it is of this map or a later one.
  uint64_t revision() const { return revision_.load(std::memory_order_acquire); }
  // Leases hold for clients whose map is of this revision or a later one. Ask for what is left of
  // the lease first. Acquire, with the release of Set: a lease that is told with an earlier
  // revision was looked at before Set returned, so the group knows when the last of them is over.
  uint64_t leases_from() const { return leases_from_.load(std::memory_order_acquire); }

  void Set(const GroupPartitions& group) {
    for (uint32_t i = 0; i < kPartitions; ++i) {
      changed_[i].store(group.changed.empty() ? 0 : group.changed[i], std::memory_order_relaxed);
      served_[i].store(group.served[i], std::memory_order_relaxed);
    }
    all_.store(group.alone && group.served.all(), std::memory_order_relaxed);
    leases_from_.store(group.lost, std::memory_order_release);
    revision_.store(group.revision, std::memory_order_release);
  }

 private:
  std::atomic<bool> all_{true};
  std::array<std::atomic<bool>, kPartitions> served_{};
  std::array<std::atomic<uint64_t>, kPartitions> changed_{};
  std::atomic<uint64_t> revision_{0};
  std::atomic<uint64_t> leases_from_{0};
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_SERVED_PARTITIONS_H_
