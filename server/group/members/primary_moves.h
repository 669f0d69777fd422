#ifndef GANNET_SERVER_GROUP_MEMBERS_PRIMARY_MOVES_H_
#define GANNET_SERVER_GROUP_MEMBERS_PRIMARY_MOVES_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "server/group/members/group_context.h"
#include "server/group/members/primary_stream.h"
#include "server/group/replica/partition_end.h"

namespace gannet {

// How a primary ends the partitions that a map has closed, which move to other groups, and tells
// their receivers (docs/partitions.md).
//
// The member's thread only.
class PrimaryMoves {
 public:
  // `context` and `stream` outlive this.
  PrimaryMoves(const GroupContext& context, const GroupTimes& times, PrimaryStream* stream)
      : context_(context), stream_(*stream), end_(times) {}

  // Returns whether it has told a receiver of an end, behind which a beacon is due: that brings the
  // clock that the receiver waits for. REQUIRES: clients were told of leases just before, as
  // PartitionEnd wants; the stream's mutex is not held.
  bool Poll();
  // A receiver will close soon.
  void OnClosing(BootTime now) { end_.OnClosing(now); }
  // Returns the longest lease that clients may be told of.
  int64_t LeaseNsMax() const { return end_.LeaseNsMax(); }
  // What the map of this revision has closed has ended.
  uint64_t ended_map() const { return end_.ended() ? end_.ended()->revision : 0; }
  // Returns when to Poll at the latest.
  BootTime next_at() const { return next_at_; }

 private:
  void End();
  bool TellEnded() GANNET_REQUIRES(stream_.mutex());

  const GroupContext& context_;
  PrimaryStream& stream_;
  PartitionEnd end_;
  uint64_t version_at_end_ = 0;  // of the store, then
  BootTime next_at_ = BootTime::Never();
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_PRIMARY_MOVES_H_
