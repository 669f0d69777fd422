#ifndef GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_HEATS_H_
#define GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_HEATS_H_

#include "common/protocol/heats.h"

namespace gannet {

// The example of docs/protocol-values.md.
inline constexpr HeatsReply kExampleHeats = {.address = 0x7f5a90000000,
                                             .bytes = 0x1000008,
                                             .rkey = 0x1003,
                                             .granule_bytes = 64,
                                             .used_once = 96,
                                             .units_per_doubling = 8,
                                             .most = 136,
                                             .reserved = {}};

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_HEATS_H_
