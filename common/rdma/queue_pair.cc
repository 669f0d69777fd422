#include "common/rdma/queue_pair.h"

#include <cerrno>
#include <cstdlib>

#include "common/rdma/status.h"

namespace gannet {
namespace {

// siw returns negative errno values. ENOMEM with nothing taken is the one harmless refusal.
template <class WorkRequest>
PostResult ResultOf(int error, const WorkRequest* chain, const WorkRequest* refused) {
  if (error == 0) [[likely]]
    return PostResult::kPosted;
  return std::abs(error) == ENOMEM && refused == chain ? PostResult::kQueueFull
                                                       : PostResult::kBroken;
}

ibv_send_wr Request(ibv_wr_opcode opcode, uint64_t wr_id, ibv_sge* sge, unsigned flags) {
  ibv_send_wr request{};
  request.wr_id = wr_id;
  request.sg_list = sge;
  request.num_sge = sge == nullptr ? 0 : 1;
  request.opcode = opcode;
  request.send_flags = flags;
  return request;
}

}  // namespace

absl::StatusOr<QueuePairLimits> CreateQueuePair(rdma_cm_id* id, const QueuePairOptions& options) {
  uint32_t inline_bytes = options.inline_bytes;
  for (;;) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = options.send_cq;
    attributes.recv_cq = options.recv_cq;
    attributes.srq = options.srq;
    attributes.qp_type = IBV_QPT_RC;
    attributes.sq_sig_all = 0;
    attributes.cap = {.max_send_wr = options.send_wrs,
                      .max_recv_wr = options.srq == nullptr ? options.recv_wrs : 0,
                      .max_send_sge = options.send_sges,
                      .max_recv_sge = options.srq == nullptr ? options.recv_sges : 0,
                      .max_inline_data = inline_bytes};
    if (rdma_create_qp(id, options.pd, &attributes) == 0) {
      return QueuePairLimits{attributes.cap.max_send_wr, attributes.cap.max_recv_wr,
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

PostResult PostSend(ibv_qp* qp, ibv_send_wr* chain) {
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(qp, chain, &refused);
  return ResultOf(error, chain, refused);
}

PostResult PostReceive(ibv_qp* qp, ibv_recv_wr* chain) {
  ibv_recv_wr* refused = nullptr;
  const int error = ibv_post_recv(qp, chain, &refused);
  return ResultOf(error, chain, refused);
}

PostResult PostReceive(ibv_srq* srq, ibv_recv_wr* chain) {
  ibv_recv_wr* refused = nullptr;
  const int error = ibv_post_srq_recv(srq, chain, &refused);
  return ResultOf(error, chain, refused);
}

ibv_send_wr SendRequest(uint64_t wr_id, ibv_sge* sge, unsigned flags) {
  return Request(IBV_WR_SEND, wr_id, sge, flags);
}

ibv_send_wr ReadRequest(uint64_t wr_id, ibv_sge* sge, uint64_t remote_address, uint32_t rkey,
                        unsigned flags) {
  ibv_send_wr request = Request(IBV_WR_RDMA_READ, wr_id, sge, flags);
  request.wr.rdma = {remote_address, rkey};
  return request;
}

ibv_send_wr WriteRequest(uint64_t wr_id, ibv_sge* sge, uint64_t remote_address, uint32_t rkey,
                         unsigned flags) {
  ibv_send_wr request = Request(IBV_WR_RDMA_WRITE, wr_id, sge, flags);
  request.wr.rdma = {remote_address, rkey};
  return request;
}

ibv_send_wr CompareAndSwapRequest(uint64_t wr_id, ibv_sge* sge, uint64_t remote_address,
                                  uint32_t rkey, uint64_t expected, uint64_t desired,
                                  unsigned flags) {
  ibv_send_wr request = Request(IBV_WR_ATOMIC_CMP_AND_SWP, wr_id, sge, flags);
  request.wr.atomic.remote_addr = remote_address;
  request.wr.atomic.compare_add = expected;
  request.wr.atomic.swap = desired;
  request.wr.atomic.rkey = rkey;
  return request;
}

absl::Status MoveToError(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return ErrnoStatus(ibv_modify_qp(qp, &attributes, IBV_QP_STATE),
                     "cannot move the queue pair to the error state");
}

}  // namespace gannet
