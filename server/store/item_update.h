#ifndef GANNET_SERVER_STORE_ITEM_UPDATE_H_
#define GANNET_SERVER_STORE_ITEM_UPDATE_H_

#include <cstdint>
#include <string_view>

namespace gannet {

// What an update writes over an item: what its Change tells, in so few words that the compiler
// keeps them in registers.
struct ItemUpdate {
  uint64_t version;
  uint32_t flags;
  std::string_view key;
  std::string_view value;
  uint64_t item_checksum;  // as in Change
};

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_ITEM_UPDATE_H_
