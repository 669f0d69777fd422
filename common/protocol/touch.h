#ifndef GANNET_COMMON_PROTOCOL_TOUCH_H_
#define GANNET_COMMON_PROTOCOL_TOUCH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/layout/slot.h"
#include "common/protocol/limits.h"
#include "common/protocol/message.h"

namespace gannet {

// A bit of Grant::features: the server evicts items, so it wants to know what clients READ.
inline constexpr uint16_t kGrantEvicts = 1 << 0;
// And another one: it wants to know only what is popular, as it leases items and evicts none. So a
// touch may stand for uses of other items, too.
inline constexpr uint16_t kGrantSamplesTouches = 1 << 4;

// What a client tells of an item that it READ, 8 bytes: bits 0-36 are the item's offset / 16, bits
// 37-44 how often it was used (1 to 255), the others are zero. Touches are the payload of a
// heartbeat. The sender may be wrong, or lie: the item may be gone, and another one may lie there.
struct Touch {
  static constexpr uint32_t kUsesMax = 255;

  constexpr explicit Touch(uint64_t w) : word(w) {}
  static constexpr Touch Of(uint64_t offset, uint32_t uses) {
    return Touch(offset / kItemAlignment | uint64_t{uses} << kOffsetBits);
  }
  constexpr uint64_t offset() const {
    return (word & ((uint64_t{1} << kOffsetBits) - 1)) * kItemAlignment;
  }
  constexpr uint32_t uses() const { return static_cast<uint32_t>(word >> kOffsetBits) & kUsesMax; }

  uint64_t word;
};
static_assert(sizeof(Touch) == 8);

// Calls use(Touch) for each touch of a heartbeat's payload.
template <class F>
void ForEachTouch(std::string_view touches, F use) {
  uint64_t word;
  for (; touches.size() >= sizeof(word); touches.remove_prefix(sizeof(word))) {
    std::memcpy(&word, touches.data(), sizeof(word));
    use(Touch(word));
  }
}

// The most that one message may carry.
inline constexpr size_t kTouchesMax = (kMessageBytesMax - sizeof(RequestHeader)) / sizeof(Touch);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_TOUCH_H_
