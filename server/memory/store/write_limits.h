#ifndef GANNET_SERVER_MEMORY_STORE_WRITE_LIMITS_H_
#define GANNET_SERVER_MEMORY_STORE_WRITE_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/layout/item.h"

namespace gannet {

// A step of a flush ends when it has removed so many items or looked at so many homes, so that it
// keeps other requests waiting for well under a millisecond.
inline constexpr size_t kFlushItemsPerStep = 256;
inline constexpr uint64_t kFlushHomesPerStep = 2048;

inline bool WithinLimits(std::string_view key, size_t value_bytes) {
  return !key.empty() && key.size() <= kKeyBytesMax && value_bytes <= kValueBytesMax;
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_WRITE_LIMITS_H_
