#ifndef GANNET_COMMON_LAYOUT_ITEM_LEASE_HEADER_H_
#define GANNET_COMMON_LAYOUT_ITEM_LEASE_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/base/hash.h"

namespace gannet {

// What clients READ of a server that leases items (docs/item-leases.md). It lies in memory of its
// own: this header, and behind it one word for each item that may be leased. A word is the commit
// word of an item that is leased, or 0.
//
// The server promises: until `end_ms`, by the clock by which items expire, no item changes whose
// word is there. Words that a client READ count under the header of a READ that completed before
// theirs was posted, and under later headers of the same generation.
struct ItemLeaseHeader {
  uint64_t checksum;    // XXH3-64 of generation and end, seeded with the incarnation
  uint64_t generation;  // a word went away before it grew
  uint64_t end_ms;      // 0: there was no lease yet
  uint64_t reserved[5];
};
static_assert(sizeof(ItemLeaseHeader) == 64 && std::is_trivially_copyable_v<ItemLeaseHeader>);
static_assert(offsetof(ItemLeaseHeader, generation) == 8 &&
              offsetof(ItemLeaseHeader, end_ms) == 16);

// Items with longer values are not leased, as no client copies them.
inline constexpr uint32_t kLeasedValueBytesMax = 64 << 10;

constexpr uint64_t ItemLeaseBytes(uint32_t words) {
  return sizeof(ItemLeaseHeader) + words * sizeof(uint64_t);
}

inline uint64_t ItemLeaseChecksum(const ItemLeaseHeader& header, uint64_t incarnation) {
  return Xxh3(&header.generation, 2 * sizeof(uint64_t), incarnation);
}

// Returns whether a copy of a header is whole, and of this run of the server.
inline bool ItemLeaseValid(const ItemLeaseHeader& header, uint64_t incarnation) {
  return header.checksum == ItemLeaseChecksum(header, incarnation);
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_ITEM_LEASE_HEADER_H_
