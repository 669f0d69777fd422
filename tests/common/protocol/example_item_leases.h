#ifndef GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_ITEM_LEASES_H_
#define GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_ITEM_LEASES_H_

#include "common/protocol/item_leases_reply.h"

namespace gannet {

// The example of docs/item-leases.md.
inline constexpr ItemLeasesReply kExampleItemLeases = {
    .address = 0x7f5aa0000000, .rkey = 0x1004, .words = 1024, .lease_ms = 20, .reserved = {}};

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_PROTOCOL_EXAMPLE_ITEM_LEASES_H_
