#ifndef GANNET_COMMON_PROTOCOL_ITEM_LEASES_REPLY_H_
#define GANNET_COMMON_PROTOCOL_ITEM_LEASES_REPLY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "common/protocol/limits.h"

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
  uint32_t lease_ms;  // how long a lease lasts; the header is renewed more often
  uint32_t reserved[3];
};
static_assert(sizeof(ItemLeasesReply) == 32 && std::is_trivially_copyable_v<ItemLeasesReply>);
static_assert(offsetof(ItemLeasesReply, rkey) == 8 && offsetof(ItemLeasesReply, words) == 12 &&
              offsetof(ItemLeasesReply, lease_ms) == 16);

// Returns what the value of a kItemLeases reply says; no words if it cannot be right. Fields that
// an older server does not send stay 0.
inline ItemLeasesReply DecodeItemLeases(std::string_view value) {
  ItemLeasesReply told{};
  std::memcpy(&told, value.data(), std::min(value.size(), sizeof(told)));
  const bool sane = told.words <= kLeasedItemsMax && told.lease_ms > 0 &&
                    told.lease_ms <= kItemLeaseMsMax && told.address != 0;
  return sane ? told : ItemLeasesReply{};
}

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_ITEM_LEASES_REPLY_H_
