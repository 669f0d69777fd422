#ifndef SOFTVERBS_QP_DATAGRAM_SENDER_H_
#define SOFTVERBS_QP_DATAGRAM_SENDER_H_

#include <infiniband/verbs.h>

#include "softverbs/qp/qp.h"

namespace softverbs {

// The requester of a UD queue pair. A datagram is complete when it is in the rings of all its
// destinations. Destinations that are gone are skipped. If a ring is full, the datagram waits, as
// for a busy wire.

// Posts the chain. Returns 0 or an errno value; then *bad_wr is the first request not posted. If
// bad_wr is null, either all requests or none are posted. REQUIRES: the lock is not held, because
// links may have to be opened.
int PostDatagrams(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);

// Sends everything that can be sent now. REQUIRES: the lock is held.
void TransmitDatagrams(Qp& qp) SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_DATAGRAM_SENDER_H_
