#ifndef GANNET_SERVER_INDEX_DISPLACEMENT_H_
#define GANNET_SERVER_INDEX_DISPLACEMENT_H_

#include <cstdint>
#include <optional>

#include "server/index/occupancy.h"

namespace gannet {

// Moves per chain at most: docs/memory-layout.md has what other bounds give.
inline constexpr uint32_t kChainMovesMax = 16;

// A way to make room in a full window. As a key's two buckets are neighbours, a chain of moves is a
// line: one key of bucket `start` goes to its neighbour, one of that to the next, ..., `moves`
// times, until a bucket with room is reached.
struct Chain {
  uint64_t start;  // the bucket of the window that gets a free slot
  uint32_t moves;
  bool to_next;  // direction
};

// The shorter of the two chains that make room in {home, home + 1}; nullopt: none within
// kChainMovesMax. Looks at buckets [home - kChainMovesMax, home + 1 + kChainMovesMax].
// REQUIRES: both buckets are full; the locks of those buckets.
std::optional<Chain> FindChain(const Occupancy& occupancy, uint64_t home);

}  // namespace gannet

#endif  // GANNET_SERVER_INDEX_DISPLACEMENT_H_
