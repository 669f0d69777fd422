#ifndef GANNET_SERVER_RPC_RAIL_H_
#define GANNET_SERVER_RPC_RAIL_H_

#include <cstdint>

#include "common/protocol/heats.h"
#include "common/protocol/item_leases_reply.h"
#include "common/rdma/address.h"
#include "common/rdma/device.h"

namespace gannet {

// An address of the server, the device behind it, and what the server's memory is called there. The
// memory is the same for all rails. Two rails may have one device, and share all but the address.
struct Rail {
  SocketAddress address;
  Device device;
  uint8_t port = 1;  // of the device
  ibv_pd* pd = nullptr;

  uint32_t region_lkey = 0;  // for READs of values straight into the region
  uint32_t tier_lkey = 0;    // of the memory that values on a disk are read into

  // What the clients of this rail are told.
  uint32_t region_rkey = 0;
  HeatsReply heats{};             // all 0: there are none to READ
  ItemLeasesReply item_leases{};  // all 0: no item is leased
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_RAIL_H_
