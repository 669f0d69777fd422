#ifndef GANNET_COMMON_PROTOCOL_PARTITION_OF_H_
#define GANNET_COMMON_PROTOCOL_PARTITION_OF_H_

#include <cstdint>
#include <string_view>

#include "common/base/xxh3_inline.h"
#include "common/protocol/partition_map.h"

namespace gannet {

// PartitionOf for the few sources where every instruction counts.
[[gnu::always_inline]] inline uint32_t PartitionOfInline(std::string_view key) {
  return static_cast<uint32_t>(Xxh3UnseededInline(key.data(), key.size()) >> (64 - kPartitionBits));
}

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_PARTITION_OF_H_
