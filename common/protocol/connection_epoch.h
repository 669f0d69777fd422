#ifndef GANNET_COMMON_PROTOCOL_CONNECTION_EPOCH_H_
#define GANNET_COMMON_PROTOCOL_CONNECTION_EPOCH_H_

#include <cstdint>

namespace gannet {

// A group's primary gives ids to connections. Their upper 12 bits are the lowest 12 bits of its
// epoch. A fence has such an id in its upper half, so fences grow from one primary to the next.
// After 4,096 epochs they begin anew. The versions of items, which always grow, still tell old from
// new.
inline constexpr int kConnectionEpochShift = 20;

// Returns the first id of an epoch.
constexpr uint32_t FirstConnectionOf(uint64_t epoch) {
  return static_cast<uint32_t>(epoch << kConnectionEpochShift);
}
// Returns the epoch, modulo 4,096, of the primary that gave this id.
constexpr uint32_t EpochOfConnection(uint32_t id) { return id >> kConnectionEpochShift; }

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_CONNECTION_EPOCH_H_
