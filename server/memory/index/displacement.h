#ifndef GANNET_SERVER_MEMORY_INDEX_DISPLACEMENT_H_
#define GANNET_SERVER_MEMORY_INDEX_DISPLACEMENT_H_

#include <cstdint>
#include <optional>

#include "server/memory/index/occupancy.h"

namespace gannet {

// The most moves per chain. docs/memory.md shows the effect of other bounds.
inline constexpr uint32_t kChainMovesMax = 16;

// How many homes to both sides of its own a key's lock covers. Removing a key of such a home
// touches the two buckets of its window, and their neighbours, where a key from the stash may come
// back. All of these are covered too.
inline constexpr uint64_t kNearHomes = kChainMovesMax - 1;

// A way to make room in a full window. A key's two buckets are neighbours, so a chain of moves is a
// line: one key of bucket `start` moves to the next bucket, one of that bucket's keys to the next,
// and so on, `moves` times, until a bucket with room is reached.
struct Chain {
  uint64_t start;  // the bucket of the window that gets a free slot
  uint32_t moves;
  bool to_next;  // direction
};

// Returns the shorter of the two chains that make room in {home, home + 1}, or nullopt if there is
// none within kChainMovesMax. Looks at buckets [home - kChainMovesMax, home + 1 + kChainMovesMax].
// REQUIRES: both buckets are full; the caller holds the locks of all those buckets.
std::optional<Chain> FindChain(const Occupancy& occupancy, uint64_t home);

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_INDEX_DISPLACEMENT_H_
