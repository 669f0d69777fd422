#ifndef GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_RAILS_H_
#define GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_RAILS_H_

#include <cstddef>
#include <span>
#include <string>

#include "common/protocol/rails_reply.h"
#include "tests/common/protocol/golden_bytes.h"

namespace gannet {

// The example of docs/rails.md: 10.0.0.1 and 10.0.1.1, of which the second is down.
inline constexpr RailsReply kExampleRails = {
    .count = 2,
    .lock_rail = 0,
    .own_rail = 1,
    .reserved = {},
    .rails = {{{.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1},
                .port = 7471,
                .mtu_bytes = 4096,
                .mbit_per_second = 100'000,
                .state = static_cast<uint8_t>(RailState::kUp),
                .port_number = 1,
                .reserved = {},
                .connections = 300},
               {.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 1, 1},
                .port = 7471,
                .mtu_bytes = 4096,
                .mbit_per_second = 100'000,
                .state = static_cast<uint8_t>(RailState::kDown),
                .port_number = 2,
                .reserved = {},
                .connections = 2}}}};

inline std::string HexOfRails(const RailsReply& rails) {
  return Hex(std::as_bytes(std::span(&rails, 1)).first(rails.Bytes()));
}

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_RAILS_H_
