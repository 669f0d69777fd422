#ifndef GANNET_SERVER_GROUP_MOVE_PARTITION_DROPPER_H_
#define GANNET_SERVER_GROUP_MOVE_PARTITION_DROPPER_H_

#include <bitset>
#include <cstdint>

#include "common/base/server_time.h"
#include "common/protocol/partition_map.h"
#include "server/writes/writes.h"

namespace gannet {

// Deletes all items of some partitions from a group's store, as a client would: the deletions are
// recorded, and the backups follow. It does a bounded piece of work in each step, so its owner may
// pause between two steps for as long as it likes.
//
//   dropper.Begin(partitions);
//   while (!dropper.Step(now)) ...   // from time to time
//
// Before each step its owner lets the store have all changes that are safe: nobody else may look
// for them if no client waits.
//
// It finds what is published when a step looks at its place, so it waits until all is that this
// thread knew to be decided at Begin. REQUIRES: nobody puts items into these partitions later.
//
// Thread safety: one thread at a time. Others may use `writes` meanwhile.
class PartitionDropper {
 public:
  using Partitions = std::bitset<kPartitions>;
  // Homes of the index that one step looks at. Each has up to a handful of items.
  static constexpr uint64_t kHomesPerStep = 128;

  // `writes` outlives it.
  explicit PartitionDropper(Writes* writes) : writes_(writes) {}

  // Begins anew, whatever it did before.
  void Begin(const Partitions& partitions);
  // Returns whether all is done: nothing of the partitions is in the store any more. If the changes
  // are recorded, that is once the last deletion is published. A step that could not record its
  // deletions is done again by the next one.
  bool Step(ServerTime now);
  bool done() const { return walked_ && writes_->published() >= ticket_; }
  const Partitions& partitions() const { return partitions_; }
  uint64_t removed() const { return removed_; }  // since Begin

 private:
  Writes* const writes_;
  Partitions partitions_;
  uint64_t after_ = 0;  // ticket: it looks at nothing before this is published
  bool walked_ = true;
  uint64_t position_ = 0;
  uint64_t ticket_ = 0;  // of the last deletion
  uint64_t removed_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_PARTITION_DROPPER_H_
