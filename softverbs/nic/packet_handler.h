#ifndef SOFTVERBS_NIC_PACKET_HANDLER_H_
#define SOFTVERBS_NIC_PACKET_HANDLER_H_

#include <cstdint>

#include "softverbs/nic/link.h"
#include "softverbs/nic/packet.h"

namespace softverbs {

struct Qp;

// The functions of a queue pair that the engine calls. softverbs/qp implements them. The engine
// holds its progress lock and none of the queue pair's locks.

// Handles a packet for `qp`. The header is the caller's copy. Only the record's size in it has been
// checked. The payload may change while it is read.
void HandlePacket(Qp& qp, Link& link, const PacketHeader& header, const uint8_t* payload);

// Returns true if packets for `qp` must wait, because a torn READ is in progress there.
bool MustWait(Qp& qp);

// Returns the queue pair's number for faults and simulation. It does not depend on the process.
uint32_t OrdinalOf(const Qp& qp);

// Returns the queue pair's node in a simulation.
uint32_t NodeOf(const Qp& qp);

// Counts a request that arrives, for faults, and returns its number.
uint64_t NextArrival(Qp& qp);

// Called when the link has space again, or came up.
void HandleLinkSpace(Qp& qp);

// Called when a batch ends that had requests for `qp` (LateAcks).
void HandleLateAck(Qp& qp);

// Returns the port of the path that `qp` is on, counted over all devices.
int PortOf(Qp& qp);

// Called when some port went down.
void HandlePortDown(Qp& qp);

// Called when `link` is down. If `qp` uses it, its peer is gone.
void HandleLinkDown(Qp& qp, const Link& link);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_PACKET_HANDLER_H_
