#ifndef GANNET_COMMON_LAYOUT_SLOT_H_
#define GANNET_COMMON_LAYOUT_SLOT_H_

#include <cstdint>

#include "common/layout/key_hash.h"
#include "common/layout/size_class.h"

namespace gannet {

inline constexpr uint32_t kOffsetBits = 37;  // of 16-byte units: regions of up to 2 TiB
inline constexpr uint32_t kSizeClassBits = 7;
inline constexpr uint64_t kRegionBytesMax = (1ull << kOffsetBits) * kItemAlignment;

// One entry of a bucket: a 64-bit word, always read and written whole, so never torn.
//
//   63        44 43       37 36                    0
//   [ tag : 20 ][ class : 7 ][ offset / 16 : 37    ]
//
// All zeroes is an empty slot (offset 0 is the superblock, never an item).
class Slot {
 public:
  constexpr Slot() = default;
  constexpr explicit Slot(uint64_t word) : word_(word) {}
  // REQUIRES: offset is a multiple of 16 below kRegionBytesMax.
  static constexpr Slot Of(uint32_t tag, uint32_t size_class, uint64_t offset) {
    return Slot(static_cast<uint64_t>(tag) << (kOffsetBits + kSizeClassBits) |
                static_cast<uint64_t>(size_class) << kOffsetBits | offset / kItemAlignment);
  }

  constexpr uint64_t word() const { return word_; }
  constexpr bool empty() const { return word_ == 0; }
  constexpr uint32_t tag() const {
    return static_cast<uint32_t>(word_ >> (kOffsetBits + kSizeClassBits));
  }
  constexpr uint32_t size_class() const {
    return static_cast<uint32_t>(word_ >> kOffsetBits) & ((1u << kSizeClassBits) - 1);
  }
  // The item's offset from the region's base, in bytes.
  constexpr uint64_t offset() const {
    return (word_ & ((1ull << kOffsetBits) - 1)) * kItemAlignment;
  }
  // The bytes to READ at offset(); 0 if the class does not exist.
  constexpr uint64_t read_bytes() const { return SizeClassBytes(size_class()); }

  friend constexpr bool operator==(Slot, Slot) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(Slot) == 8);
static_assert(kTagBits + kSizeClassBits + kOffsetBits == 64);

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_SLOT_H_
