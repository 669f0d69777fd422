#ifndef SOFTVERBS_NIC_PACKET_HANDLER_H_
#define SOFTVERBS_NIC_PACKET_HANDLER_H_

#include <cstdint>

#include "softverbs/nic/link.h"
#include "softverbs/nic/packet.h"

namespace softverbs {

struct Qp;

// What the engine calls of a queue pair; softverbs/qp implements it. All are called with the
// engine's progress lock held and none of the queue pair's.

// A packet for `qp`. The header is the caller's copy; nothing in it but the record's size has been
// checked. The payload may change while it is read.
void HandlePacket(Qp& qp, Link& link, const PacketHeader& header, const uint8_t* payload);

// Whether packets for `qp` must wait, because a torn READ is in progress there.
bool MustWait(Qp& qp);

// The queue pair's number for faults and simulation, which does not depend on the process.
uint32_t OrdinalOf(const Qp& qp);

// Counts the requests that arrive, for faults: the number of this one.
uint64_t NextArrival(Qp& qp);

// The link has space again, or came up.
void HandleLinkSpace(Qp& qp);

// If `qp` uses `link`: its peer is gone.
void HandleLinkDown(Qp& qp, const Link& link);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_PACKET_HANDLER_H_
