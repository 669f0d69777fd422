#ifndef GANNET_COMMON_LAYOUT_SIZE_CLASS_H_
#define GANNET_COMMON_LAYOUT_SIZE_CLASS_H_

#include <array>
#include <bit>
#include <cstdint>

namespace gannet {

// The size classes of items. A slot says by a 7-bit class how many bytes to READ. Classes have
// steps of 16 bytes up to 128 bytes, then four steps per doubling. That is the spacing of
// jemalloc's size classes. A block has at most as many bytes as its class.
//
//   class   1 .. 8:   16, 32, ..., 128 bytes
//   class   9 .. 85:  160, 192, 224, 256, 320, 384, 448, 512, ..., 80 MiB
//   class   0:        none; 127: reserved as a marker for a later kind of slot
//
// A class also tells how the item in its block proves itself: up to kSealedClassMax (4 KiB) by a
// checksum over header and value, above it as a large item (large_item.h).
inline constexpr uint32_t kSizeClassNone = 0;
inline constexpr uint32_t kSealedClassMax = 28;
inline constexpr uint32_t kSizeClassMax = 85;
inline constexpr uint32_t kSizeClassMarker = 127;
inline constexpr uint64_t kItemAlignment = 16;

// Bytes of a block by size class; 0 if the class does not exist.
inline constexpr std::array<uint32_t, 128> kSizeClassBytes = [] {
  std::array<uint32_t, 128> bytes{};
  for (uint32_t size_class = 1; size_class <= 8; ++size_class) bytes[size_class] = size_class * 16;
  for (uint32_t size_class = 9; size_class <= kSizeClassMax; ++size_class) {
    const uint32_t doubling = (size_class - 9) / 4;
    const uint32_t step = (size_class - 9) % 4 + 1;
    bytes[size_class] = (128u << doubling) + step * (32u << doubling);
  }
  return bytes;
}();

// Returns the most bytes of an item of `size_class`, or 0 if the class does not exist (a hostile or
// torn slot).
constexpr uint64_t SizeClassBytes(uint32_t size_class) {
  return size_class < kSizeClassBytes.size() ? kSizeClassBytes[size_class] : 0;
}

// Returns whether blocks of this class hold large items.
constexpr bool IsLargeClass(uint32_t size_class) {
  return size_class > kSealedClassMax && SizeClassBytes(size_class) > 0;
}

// Returns the smallest class that holds `bytes`, or kSizeClassNone if none does (more than 80 MiB,
// or 0).
constexpr uint32_t SizeClassFor(uint64_t bytes) {
  if (bytes <= 128) return static_cast<uint32_t>((bytes + 15) / 16);
  if (bytes > SizeClassBytes(kSizeClassMax)) return kSizeClassNone;
  const uint32_t doubling = static_cast<uint32_t>(std::bit_width(bytes - 1)) - 8;  // 129..256 -> 0
  const uint64_t base = 128ull << doubling;
  const uint64_t step = 32ull << doubling;
  return 8 + 4 * doubling + static_cast<uint32_t>((bytes - base + step - 1) / step);
}

static_assert(SizeClassBytes(8) == 128 && SizeClassBytes(9) == 160 && SizeClassBytes(12) == 256);
static_assert(SizeClassBytes(13) == 320 && SizeClassBytes(kSizeClassMax) == 80u << 20);
static_assert(SizeClassBytes(kSealedClassMax) == 4096 && SizeClassBytes(68) == 4u << 20);
static_assert(SizeClassFor(129) == 9 && SizeClassFor(160) == 9 && SizeClassFor(161) == 10);
static_assert(SizeClassFor(256) == 12 && SizeClassFor(257) == 13 && SizeClassFor(1) == 1);

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_SIZE_CLASS_H_
