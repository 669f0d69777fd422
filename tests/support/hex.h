#ifndef GANNET_TESTS_SUPPORT_HEX_H_
#define GANNET_TESTS_SUPPORT_HEX_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/strings/escaping.h"

namespace test_support {

// Two lower-case digits a byte, as the documents show golden bytes.
inline std::string Hex(std::span<const std::byte> bytes) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace test_support

#endif  // GANNET_TESTS_SUPPORT_HEX_H_
