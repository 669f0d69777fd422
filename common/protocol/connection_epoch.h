#ifndef GANNET_COMMON_PROTOCOL_CONNECTION_EPOCH_H_
#define GANNET_COMMON_PROTOCOL_CONNECTION_EPOCH_H_

#include <cstdint>

namespace gannet {

// The upper 12 bits of the ids that a group's primary gives to connections are those of its epoch.
// So fences, which have such an id in their upper half, grow from one primary to the next. What
// wraps compares by the items' versions.
inline constexpr int kConnectionEpochShift = 20;

// Returns the first id of an epoch.
constexpr uint32_t FirstConnectionOf(uint64_t epoch) {
  return static_cast<uint32_t>(epoch << kConnectionEpochShift);
}
// Returns the epoch, modulo 4,096, of the primary that gave this id.
constexpr uint32_t EpochOfConnection(uint32_t id) { return id >> kConnectionEpochShift; }

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_CONNECTION_EPOCH_H_
