#ifndef GANNET_TESTS_COMMON_PROTOCOL_GOLDEN_BYTES_H_
#define GANNET_TESTS_COMMON_PROTOCOL_GOLDEN_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gannet {

// "01 02 ..." in lines of 16, as docs/ prints them.
inline std::string Hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) text += i % 16 == 0 ? '\n' : ' ';
    text += kDigits[static_cast<uint8_t>(bytes[i]) >> 4];
    text += kDigits[static_cast<uint8_t>(bytes[i]) & 15];
  }
  return text;
}

template <class T>
std::string HexOf(const T& value) {
  return Hex(std::as_bytes(std::span(&value, 1)));
}

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_PROTOCOL_GOLDEN_BYTES_H_
