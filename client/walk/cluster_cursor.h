#ifndef GANNET_CLIENT_WALK_CLUSTER_CURSOR_H_
#define GANNET_CLIENT_WALK_CLUSTER_CURSOR_H_

#include <gannet/walker.h>

#include <bit>
#include <cstdint>

#include "common/protocol/partition_map.h"

namespace gannet {

// A walk's position in an index is a hash, of which a small index needs only the upper bits. As a
// number with its bits in reverse order it is small if the index is. Its own inverse.
constexpr uint64_t ReversedBits(uint64_t bits) {
  bits = (bits & 0x5555555555555555) << 1 | (bits >> 1 & 0x5555555555555555);
  bits = (bits & 0x3333333333333333) << 2 | (bits >> 2 & 0x3333333333333333);
  bits = (bits & 0x0f0f0f0f0f0f0f0f) << 4 | (bits >> 4 & 0x0f0f0f0f0f0f0f0f);
  return __builtin_bswap64(bits);
}

// Where a walk in parts through a cluster goes on: a position in a group's walk, and the map by
// which the walk began. All of it is in the number that Walker::WalkPart returns:
//
//   (position with reversed bits * number of groups + group's place in the map) * 4096 + bits of
//   the map's revision, as RevisionBits; never 0, so no cursor is 0
struct ClusterCursor {
  uint64_t position = 0;
  uint64_t group = 0;
  uint64_t revision_bits = 0;

  // How many bits a position may have, so that the cursor has at most Walker::kPositionBits.
  static int PositionBits(uint64_t groups) {
    return Walker::kPositionBits - kRevisionBits - static_cast<int>(std::bit_width(groups - 1));
  }
  static uint64_t RevisionBits(uint64_t revision) { return 1 + revision % (kRevisions - 1); }
  static ClusterCursor Decode(uint64_t cursor, uint64_t groups) {
    return {.position = ReversedBits(cursor / kRevisions / groups),
            .group = cursor / kRevisions % groups,
            .revision_bits = cursor % kRevisions};
  }
  uint64_t Encode(uint64_t groups) const {
    return (ReversedBits(position) * groups + group) * kRevisions + revision_bits;
  }

 private:
  static constexpr int kRevisionBits = 12;
  static constexpr uint64_t kRevisions = uint64_t{1} << kRevisionBits;
  static_assert(kGroupsMax <= 1024, "so positions have 23 bits at least");
};

}  // namespace gannet

#endif  // GANNET_CLIENT_WALK_CLUSTER_CURSOR_H_
