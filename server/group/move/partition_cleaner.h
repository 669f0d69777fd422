#ifndef GANNET_SERVER_GROUP_MOVE_PARTITION_CLEANER_H_
#define GANNET_SERVER_GROUP_MOVE_PARTITION_CLEANER_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/server_time.h"
#include "server/group/members/group_context.h"
#include "server/group/move/partition_dropper.h"
#include "server/writes/writes.h"

namespace gannet {

// Deletes what a group's primary has of partitions that other groups own: what it gave away, and
// what a move that ended has left (docs/partitions.md, step 6). It walks through the whole store
// once when it begins, and again whenever there is such a partition that there was not before. As
// partitions may be given away one soon after the other, it begins only when none has come for a
// while.
//
// It never drops what the group owns, closed or not, as far as the primary knows the map. A primary
// knows each map by which its group got a partition: it gave that to itself, or read the map when
// it took over.
//
// It deletes nothing while it is not sure of the map: etcd has one that is not believed, or that
// was not heard of yet with all that came with it (GroupDirectory::Moves).
//
// One thread, the member's.
class PartitionCleaner {
 public:
  // It works for about this share of the time while clients ask for something, and otherwise.
  static constexpr int64_t kShareWhenBusy = 100;
  static constexpr int64_t kShareWhenIdle = 4;
  // Between two steps. A step takes milliseconds at most, so only a process that was stopped within
  // one would pause for longer.
  static constexpr int64_t kPauseNsMin = kNsPerMs;
  static constexpr int64_t kPauseNsMax = kNsPerSecond;
  // For how long the partitions to drop are the same before it begins.
  static constexpr int64_t kQuietNs = kNsPerSecond;
  // While there is nothing to do, it looks at the map so often.
  static constexpr int64_t kIdleNs = 100 * kNsPerMs;

  // Both outlive it.
  PartitionCleaner(const GroupContext& context, Writes* writes)
      : context_(context), dropper_(writes) {}

  // `taking`: the partitions that come to the group now. They are others' still, and not to be
  // dropped.
  void Poll(BootTime now, const PartitionDropper::Partitions& taking);
  BootTime next_at() const { return next_at_; }

 private:
  // Returns the partitions of other groups that do not come here.
  PartitionDropper::Partitions Unwanted(const PartitionDropper::Partitions& taking);
  // Begins to drop what is unwanted and may be there, if anything is and it is time to. Sets when
  // to look again.
  void Begin(BootTime now);

  const GroupContext& context_;
  PartitionDropper dropper_;
  int64_t map_revision_ = 0;             // SeenMap::mod_revision of the map that others_ is of
  PartitionDropper::Partitions others_;  // what other groups have
  bool dropping_ = false;
  PartitionDropper::Partitions unwanted_;
  BootTime changed_at_;                 // since then these are unwanted
  PartitionDropper::Partitions clean_;  // unwanted, and nothing of it is there
  uint64_t requests_ = 0;
  BootTime next_at_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_PARTITION_CLEANER_H_
