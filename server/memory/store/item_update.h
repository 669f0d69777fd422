#ifndef GANNET_SERVER_MEMORY_STORE_ITEM_UPDATE_H_
#define GANNET_SERVER_MEMORY_STORE_ITEM_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/log/changes/update_body.h"

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
// REQUIRES: a whole body.
inline ItemUpdate ItemUpdateOf(const std::byte* body) {
  return {.version = UpdateVersion(body),
          .flags = UpdateFlags(body),
          .key = UpdateKeyOf(body),
          .value = UpdateValueOf(body),
          .item_checksum = UpdateItemChecksum(body)};
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_ITEM_UPDATE_H_
