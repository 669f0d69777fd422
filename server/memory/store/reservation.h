#ifndef GANNET_SERVER_MEMORY_STORE_RESERVATION_H_
#define GANNET_SERVER_MEMORY_STORE_RESERVATION_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace gannet {

// A block of the heap into which the NIC or the CPU brings a value, before any client takes it for
// an item. Must be passed to Store::CommitPut, Store::Abandon or Stubs::ReplaceByItem. Clients may
// still READ its bytes through a stale location, so the CPU must write the value by StoreValueAt
// (item_writer.h).
struct Reservation {
  uint64_t offset = 0;         // of the item from the region's base
  std::span<std::byte> value;  // where the value goes
  uint32_t size_class = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_RESERVATION_H_
