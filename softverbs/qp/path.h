#ifndef SOFTVERBS_QP_PATH_H_
#define SOFTVERBS_QP_PATH_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "softverbs/nic/packet.h"
#include "softverbs/qp/qp.h"

namespace softverbs {

// The path of a connection, and its automatic migration to an alternate one (IBTA 17.2.8), for
// devices with two ports of InfiniBand (HasPathMigration). On others, attributes of an alternate
// path are kept and do nothing. `qp.attr` has both paths. When it migrates they change places.
//
//   MIGRATED --modify to REARM--> REARM --the peer is not MIGRATED, on this path--> ARMED
//   ARMED --port down, retries over, the peer migrated, modify to MIGRATED--> MIGRATED
//
// 1. The last of these is the migration: the queue pair goes on by the alternate path, nothing that
//    is under way fails, and it gets IBV_EVENT_PATH_MIG. A packet says by which port it arrives and
//    whether its sender is MIGRATED, so that the peer follows.
// 2. A peer that migrated to another port than this end's alternate one is not followed, and
//    neither is one's own way taken by a port that is down: IBV_EVENT_PATH_MIG_ERR. Then it waits
//    in REARM for the peer, or fails as without an alternate path.
// 3. A packet is taken at both ports of the device, whatever the path.
//
// All functions REQUIRE the queue pair's lock.

// Returns 0, or EINVAL: the attributes of `mask` name no alternate path, or a state that nobody may
// ask for. The device alone moves to ARMED.
int CheckMigration(const Qp& qp, const ibv_qp_attr& attr, int mask) SV_REQUIRES(qp.lock);

// Does what a change of attributes asks for. `before` is the state of migration that it replaced.
void ChangePath(Qp& qp, ibv_mig_state before, int mask) SV_REQUIRES(qp.lock);

// Returns the port of the path, counted over all devices.
int PathPort(const Qp& qp) SV_REQUIRES(qp.lock);
// Returns the port at which a packet for the queue pair arrived.
int ArrivalPort(const Qp& qp, const PacketHeader& header);

// Does what a packet says of its sender, which is the peer.
void FollowPeer(Qp& qp, const PacketHeader& header) SV_REQUIRES(qp.lock);

// Migrates, if the queue pair is ARMED and the alternate port is not down. The caller transmits.
// Returns false if it stays: for good, if `last`.
bool MigrateFromDeadPath(Qp& qp, bool last) SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_PATH_H_
