#ifndef GANNET_SERVER_REPLICA_NEIGHBOURS_H_
#define GANNET_SERVER_REPLICA_NEIGHBOURS_H_

#include <cstdint>
#include <string>

#include "common/protocol/replica.h"

namespace gannet {

// Returns why a member of another version cannot follow a primary whose region has this layout, and
// whose stream has this version; "" if it can. A joiner READs the primary's region, so it has to
// know its layout. It finds out by the grant if the primary's is too old. One that is in sync
// already READs nothing.
std::string WhyVersionsDoNotFit(const ReplicaHello& hello, uint32_t layout_version,
                                uint16_t stream_version);

}  // namespace gannet

#endif  // GANNET_SERVER_REPLICA_NEIGHBOURS_H_
