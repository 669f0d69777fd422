#ifndef GANNET_COMMON_PROTOCOL_OWN_FIELDS_H_
#define GANNET_COMMON_PROTOCOL_OWN_FIELDS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace gannet {

// Which of the last 48 bytes of a header its opcode uses. The others must be zero.
class OwnFields {
 public:
  // No bytes.
  constexpr OwnFields() = default;
  // The bytes from `begin` to `end` of the header. REQUIRES: 16 <= begin <= end <= 64.
  constexpr OwnFields(size_t begin, size_t end) {
    for (size_t byte = begin - kFirst; byte < end - kFirst; ++byte) {
      used_[byte / 8] |= uint64_t{0xff} << byte % 8 * 8;
    }
  }
  // The first bytes, up to `end`.
  static constexpr OwnFields UpTo(size_t end) { return {kFirst, end}; }

  constexpr OwnFields operator|(const OwnFields& other) const {
    OwnFields both;
    for (size_t i = 0; i < kWords; ++i) both.used_[i] = used_[i] | other.used_[i];
    return both;
  }
  constexpr bool OthersAreZero(const std::array<uint64_t, 6>& words) const {
    uint64_t others = 0;
    for (size_t i = 0; i < kWords; ++i) others |= words[i] & ~used_[i];
    return others == 0;
  }

 private:
  static constexpr size_t kFirst = 16;
  static constexpr size_t kWords = 6;
  std::array<uint64_t, kWords> used_{};  // the bits of these bytes
};

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_OWN_FIELDS_H_
