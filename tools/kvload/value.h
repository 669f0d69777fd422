#ifndef GANNET_TOOLS_KVLOAD_VALUE_H_
#define GANNET_TOOLS_KVLOAD_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gannet::kvload {

// Values that can be verified on their own, so that every GET of a load run checks the store:
//
//   bytes 0..7     XXH3-64 of bytes 8..size, seeded with the size
//   bytes 8..15    XXH3-64 of the key
//   bytes 16..23   sequence: the number of this write
//   bytes 24..     noise
//
// This detects a value of another key, a mix of two writes, a stale length and foreign bytes. It
// does not depend on who wrote the value, or on the size that this run uses.
//
// In values longer than kWholeBytesMax, only the header and sampled words are written and checked.
// Everything else would take longer than the value's transfer. Word i of them is Mix64(sequence +
// i), and the checksum covers bytes 8..23. The words between them are what the buffer happens to
// hold.
inline constexpr uint32_t kVerifiedValueBytesMin = 24;
inline constexpr uint32_t kWholeBytesMax = 4000;

enum class ValueVerdict : uint8_t {
  kRight,
  kTooShort,  // not written by ValueMaker
  kChecksum,  // torn, or not written by ValueMaker
  kOtherKey,
};
std::string_view Describe(ValueVerdict verdict);

// Writes values and checks them. Immutable after construction, so threads may share one.
class ValueMaker {
 public:
  // Values are at most `bytes_max` long; `seed` determines the noise.
  ValueMaker(uint32_t bytes_max, uint64_t seed);

  // REQUIRES: kVerifiedValueBytesMin <= out.size() <= bytes_max.
  void Make(std::string_view key, uint64_t sequence, std::span<std::byte> out) const;
  // Writes only noise, which cannot be verified. REQUIRES: out.size() <= bytes_max.
  void MakeUnverified(uint64_t sequence, std::span<std::byte> out) const;

 private:
  const std::byte* NoiseOf(uint64_t sequence) const;
  std::string noise_;
};

ValueVerdict VerifyValue(std::string_view key, std::span<const std::byte> value);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_VALUE_H_
