#include "common/rdma/connection.h"

namespace gannet {
namespace {

// 4.096 us * 2^14 = 67 ms. The device notices a lost packet early, and gives up after kRetryCount
// tries, in about half a second. With the connection manager's default that takes 15 s.
constexpr uint8_t kAckTimeoutExponent = 14;
// 0.64 ms (IBTA table 46).
constexpr uint8_t kMinRnrTimer = 12;

bool IsIwarp(const rdma_cm_id& id) {
  return id.verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

}  // namespace

Connection::Connection(Handle<rdma_cm_id> id, QueuePairLimits limits, ReadDepth depth)
    : id_(std::move(id)),
      limits_(limits),
      depth_(depth),
      send_flags_(IsIwarp(*id_) ? unsigned{IBV_SEND_FENCE} : 0u) {}

bool Connection::BeginClose(uint64_t drain_wr_id) {
  if (closing_) return drain_posted_;
  closing_ = true;
  const bool in_error = MoveToError(id_->qp).ok();
  // This fails if the peer disconnected first, or if the connection was never established. Both are
  // fine.
  rdma_disconnect(id_.get());
  if (!in_error) return false;
  // siw never flushes what is posted in the error state, and iWARP NICs refuse it. On these, the
  // change of state has flushed everything that was posted before.
  if (IsIwarp(*id_)) return false;
  // CreateQueuePair reserved a place for this request.
  ibv_send_wr drain = SendRequest(drain_wr_id, nullptr, IBV_SEND_SIGNALED);
  drain_posted_ = PostSend(id_->qp, &drain) == PostResult::kPosted;
  return drain_posted_;
}

void SetAckTimeout(rdma_cm_id* id) {
  uint8_t exponent = kAckTimeoutExponent;
  // Best effort: kernels before 5.2 do not know it, and iWARP ignores it. Our deadlines do not
  // depend on it.
  rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &exponent, sizeof(exponent));
}

void SetRnrTimer(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.min_rnr_timer = kMinRnrTimer;
  // iWARP has no RNR and refuses.
  ibv_modify_qp(qp, &attributes, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER);
}

}  // namespace gannet
