#ifndef GANNET_CLIENT_WALK_CLUSTER_CURSOR_H_
#define GANNET_CLIENT_WALK_CLUSTER_CURSOR_H_

#include <cstdint>

#include "common/protocol/partition_map.h"

namespace gannet {

// Where a walk in parts through a cluster goes on: a position in a group's walk, and the map by
// which the walk began. All of it is in the number that Walker::WalkPart returns.
//
//   bits  0 to  7: the caller's (Walker::kPositionStep)
//   bits  8 to 17: the group's place in the map
//   bits 18 to 33: of the map's revision, as RevisionBits; never 0, so no cursor is 0
//   bits 34 to 63: the position
struct ClusterCursor {
  static constexpr uint64_t kStep = uint64_t{1} << 34;  // between two positions

  uint64_t position = 0;
  uint64_t group = 0;
  uint64_t revision_bits = 0;

  static uint64_t RevisionBits(uint64_t revision) { return 1 + revision % kRevisionMax; }
  static ClusterCursor Decode(uint64_t bits) {
    return {.position = bits & ~(kStep - 1),
            .group = bits >> kGroupShift & kGroupMax,
            .revision_bits = bits >> kRevisionShift & kRevisionMax};
  }
  uint64_t Encode() const {
    return (position & ~(kStep - 1)) | revision_bits << kRevisionShift | group << kGroupShift;
  }

 private:
  static constexpr int kGroupShift = 8;
  static constexpr uint64_t kGroupMax = 1023;
  static constexpr int kRevisionShift = 18;
  static constexpr uint64_t kRevisionMax = 0xffff;
  static_assert(kGroupsMax == kGroupMax + 1);
};

}  // namespace gannet

#endif  // GANNET_CLIENT_WALK_CLUSTER_CURSOR_H_
