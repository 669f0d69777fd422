#include "common/rdma/queue_pair.h"

#include <cerrno>
#include <cstdlib>

#include "common/rdma/status.h"

namespace gannet {
absl::StatusOr<QueuePairLimits> CreateQueuePair(rdma_cm_id* id, const QueuePairOptions& options) {
  uint32_t inline_bytes = options.inline_bytes;
  for (;;) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = options.send_cq;
    attributes.recv_cq = options.recv_cq;
    attributes.srq = options.srq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.sq_sig_all = 0;
    attributes.cap = {.max_send_wr = options.send_wrs + 1,
                      .max_recv_wr = options.srq == nullptr ? options.recv_wrs : 0,
                      .max_send_sge = options.send_sges,
                      .max_recv_sge = options.srq == nullptr ? options.recv_sges : 0,
                      .max_inline_data = inline_bytes};
    if (rdma_create_qp(id, options.pd, &attributes) == 0) {
      return QueuePairLimits{attributes.cap.max_send_wr - 1, attributes.cap.max_recv_wr,
                             attributes.cap.max_inline_data};
    }
    if (inline_bytes == 0) return LastErrnoStatusOfPinning("cannot create a queue pair");
    inline_bytes /= 2;
  }
}

absl::StatusOr<Handle<ibv_srq>> CreateSharedReceiveQueue(ibv_pd* pd, uint32_t wrs, uint32_t sges) {
  ibv_srq_init_attr attributes{};
  attributes.attr = {.max_wr = wrs, .max_sge = sges};
  Handle<ibv_srq> srq(ibv_create_srq(pd, &attributes));
  if (srq == nullptr) return LastErrnoStatusOfPinning("cannot create a shared receive queue");
  return srq;
}

PostResult RefusalResult(int error, bool nothing_taken) {
  return std::abs(error) == ENOMEM && nothing_taken ? PostResult::kQueueFull : PostResult::kBroken;
}

absl::Status MoveToError(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return ErrnoStatus(ibv_modify_qp(qp, &attributes, IBV_QP_STATE),
                     "cannot move the queue pair to the error state");
}

}  // namespace gannet
