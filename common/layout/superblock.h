#ifndef GANNET_COMMON_LAYOUT_SUPERBLOCK_H_
#define GANNET_COMMON_LAYOUT_SUPERBLOCK_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/base/hash.h"
#include "common/layout/index_geometry.h"

namespace gannet {

inline constexpr uint64_t kSuperblockMagic = 0x314b4c4254454e47;  // "GNETBLK1", little-endian
inline constexpr uint32_t kLayoutVersion = 3;
inline constexpr uint64_t kSuperblockBytes = 4096;

// The region's first page: what a client must know to read the rest. It is written at start
// and when the index grows. Readers trust it only if magic, version and checksum are
// right.
struct Superblock {
  uint64_t magic;
  uint32_t layout_version;
  uint32_t struct_bytes;
  uint64_t incarnation;  // random per server start
  uint64_t region_bytes;
  uint64_t hash_seed;  // for KeyHash
  uint64_t heap_offset;
  IndexGeometry index;
  IndexGeometry next_index;  // all zeroes unless the index is growing
  uint64_t checksum;         // XXH3-64 of all fields before it, seed 0
};
static_assert(sizeof(Superblock) == 120 && std::is_trivially_copyable_v<Superblock>);
static_assert(offsetof(Superblock, incarnation) == 16 && offsetof(Superblock, index) == 48);
static_assert(offsetof(Superblock, next_index) == 80 && offsetof(Superblock, checksum) == 112);

inline uint64_t SuperblockChecksum(const Superblock& s) {
  return Xxh3(&s, offsetof(Superblock, checksum), 0);
}

// Returns whether a copy of the first page is a superblock of this layout version whose geometry
// lies within the region.
inline bool SuperblockValid(const Superblock& s) {
  return s.magic == kSuperblockMagic && s.layout_version == kLayoutVersion &&
         s.struct_bytes == sizeof(Superblock) && s.checksum == SuperblockChecksum(s) &&
         s.region_bytes <= kRegionBytesMax && s.index.ValidWithin(s.region_bytes);
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_SUPERBLOCK_H_
