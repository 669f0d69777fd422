#ifndef SOFTVERBS_QP_DATAGRAM_RECEIVER_H_
#define SOFTVERBS_QP_DATAGRAM_RECEIVER_H_

#include <cstdint>

#include "softverbs/nic/packet.h"
#include "softverbs/qp/qp.h"

namespace softverbs {

// A datagram arrived for a UD queue pair: header and data go to the next receive. It is lost, and
// nobody hears of it, when the Q_Key is another, no receive is posted, or it does not fit into that
// receive (which then serves the next datagram). REQUIRES: lock held.
void HandleDatagram(Qp& qp, const PacketHeader& header, const uint8_t* payload);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_DATAGRAM_RECEIVER_H_
