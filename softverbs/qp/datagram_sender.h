#ifndef SOFTVERBS_QP_DATAGRAM_SENDER_H_
#define SOFTVERBS_QP_DATAGRAM_SENDER_H_

#include <infiniband/verbs.h>

#include "softverbs/qp/qp.h"

namespace softverbs {

// The requester of a UD queue pair. A datagram is complete when it is in the rings of all it goes
// to; those that are gone are skipped. It waits for a ring that is full, as for a busy wire.

// Posts the chain. 0 or an errno value; then *bad_wr is the first request not posted, or, where
// bad_wr is null, none was. REQUIRES: the lock is not held: links may have to be opened.
int PostDatagrams(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);

// Sends what can be sent now. REQUIRES: the lock is held.
void TransmitDatagrams(Qp& qp);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_DATAGRAM_SENDER_H_
