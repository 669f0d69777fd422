#include "common/base/hash.h"

#include <cstring>

#include "common/base/xxh3_inline.h"

namespace gannet {
namespace {

// The first 128 bytes of XXH3's secret.
constexpr uint64_t kSecret[] = {
    0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
    0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
    0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
    0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8};

// 16 bytes with a part of the secret: the product of the halves, folded.
template <int kPart>
inline uint64_t Mix16(const uint8_t* data) {
  uint64_t low, high;
  std::memcpy(&low, data, sizeof(low));
  std::memcpy(&high, data + sizeof(low), sizeof(high));
  const auto product =
      static_cast<unsigned __int128>(low ^ kSecret[2 * kPart]) * (high ^ kSecret[2 * kPart + 1]);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t Xxh3(const void* data, size_t size, uint64_t seed) { return Xxh3Inline(data, size, seed); }

uint64_t Xxh3Unseeded(const void* data, size_t size) {
  if (size <= 16 || size > 128) [[unlikely]]
    return Xxh3(data, size, 0);
  const auto* front = static_cast<const uint8_t*>(data);
  const uint8_t* back = front + size;
  uint64_t sum = size * 0x9e3779b185ebca87;
  sum += Mix16<0>(front) + Mix16<1>(back - 16);
  if (size > 32) {
    sum += Mix16<2>(front + 16) + Mix16<3>(back - 32);
    if (size > 64) {
      sum += Mix16<4>(front + 32) + Mix16<5>(back - 48);
      if (size > 96) sum += Mix16<6>(front + 48) + Mix16<7>(back - 64);
    }
  }
  sum = (sum ^ sum >> 37) * 0x165667919e3779f9;
  return sum ^ sum >> 32;
}

}  // namespace gannet
