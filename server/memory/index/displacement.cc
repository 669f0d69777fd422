#include "server/memory/index/displacement.h"

namespace gannet {
namespace {

// The last main bucket holds only keys whose home is the bucket before it. The first bucket holds
// no key whose home is before it. So neither walk leaves the table.
std::optional<uint32_t> MovesToNext(const Occupancy& occupancy, uint64_t start) {
  for (uint32_t moves = 1; moves <= kChainMovesMax; ++moves) {
    const uint64_t bucket = start + moves - 1;
    if (!occupancy.MovableToNext(bucket)) return std::nullopt;
    if (occupancy.HasRoom(bucket + 1)) return moves;
  }
  return std::nullopt;
}

std::optional<uint32_t> MovesToPrevious(const Occupancy& occupancy, uint64_t start) {
  for (uint32_t moves = 1; moves <= kChainMovesMax; ++moves) {
    const uint64_t bucket = start - (moves - 1);
    if (!occupancy.MovableToPrevious(bucket)) return std::nullopt;
    if (occupancy.HasRoom(bucket - 1)) return moves;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Chain> FindChain(const Occupancy& occupancy, uint64_t home) {
  const auto next = MovesToNext(occupancy, home + 1);
  const auto previous = MovesToPrevious(occupancy, home);
  if (next && (!previous || *next <= *previous)) return Chain{home + 1, *next, true};
  if (previous) return Chain{home, *previous, false};
  return std::nullopt;
}

}  // namespace gannet
