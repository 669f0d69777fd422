#ifndef SOFTVERBS_QP_DATAGRAM_RECEIVER_H_
#define SOFTVERBS_QP_DATAGRAM_RECEIVER_H_

#include <cstdint>

#include "softverbs/nic/packet.h"
#include "softverbs/qp/qp.h"

namespace softverbs {

// Delivers a datagram that arrived for a UD queue pair: header and data go to the next receive. The
// datagram is lost, without notice, if its Q_Key is wrong, if no receive is posted, or if it does
// not fit into that receive (the next datagram then uses the receive). REQUIRES: lock held.
void HandleDatagram(Qp& qp, const PacketHeader& header, const uint8_t* payload)
    SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_DATAGRAM_RECEIVER_H_
