#ifndef GANNET_COMMON_PROTOCOL_ITEM_LEASES_REPLY_H_
#define GANNET_COMMON_PROTOCOL_ITEM_LEASES_REPLY_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gannet {

// A bit of Grant::features: the server leases items, and answers kItemLeases.
inline constexpr uint16_t kGrantItemLeases = 1 << 3;

// Where a server has its leases (common/layout/item_lease_header.h): the value of a kItemLeases
// reply. Clients may READ them, and nobody else writes them. All fields are 0 if there are none.
// New fields are appended, and a reader takes as many as it knows.
struct ItemLeasesReply {
  uint64_t address;   // of the header; the words follow it
  uint32_t rkey;      // READ only
  uint32_t words;     // how many there are
  uint32_t lease_ms;  // how long a lease lasts; the header is renewed four times as often
  uint32_t reserved[3];
};
static_assert(sizeof(ItemLeasesReply) == 32 && std::is_trivially_copyable_v<ItemLeasesReply>);
static_assert(offsetof(ItemLeasesReply, rkey) == 8 && offsetof(ItemLeasesReply, words) == 12 &&
              offsetof(ItemLeasesReply, lease_ms) == 16);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_ITEM_LEASES_REPLY_H_
