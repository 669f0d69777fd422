#ifndef GANNET_SERVER_MAIN_CONTROL_BYTE_SIZE_H_
#define GANNET_SERVER_MAIN_CONTROL_BYTE_SIZE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace gannet {

// Parses a size as users write it: digits and an optional suffix K, M, G or T (powers of 1024,
// either case; "1GiB" and "1GB" mean the same). InvalidArgument says what is wrong with the text.
absl::StatusOr<uint64_t> ParseByteSize(std::string_view text);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_BYTE_SIZE_H_
