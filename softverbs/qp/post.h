#ifndef SOFTVERBS_QP_POST_H_
#define SOFTVERBS_QP_POST_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "softverbs/qp/qp.h"

namespace softverbs {

// Functions of ibv_context_ops. Return 0, or an errno value with *bad_wr set to the first request
// not posted.
int PostSend(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad_wr);
int PostReceive(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr);

// Adds a request to the queue without transmitting it. Returns 0 or an errno value.
int Enqueue(Qp& qp, const ibv_send_wr& wr) SV_REQUIRES(qp.lock);
bool CanPost(const Qp& qp) SV_REQUIRES(qp.lock);
// Transmits, or flushes, what was added.
void StartPosted(Qp& qp) SV_REQUIRES(qp.lock);

// ibv_wr_complete posts all requests of the chain or, on error, none.
int PostSendAllOrNone(ibv_qp* qp, ibv_send_wr* wr);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_POST_H_
