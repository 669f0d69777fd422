#include "softverbs/qp/qp.h"

#include "softverbs/cq/held_completions.h"
#include "softverbs/qp/responder.h"
#include "softverbs/qp/split_atomic.h"

namespace softverbs {

void RaiseQpEvent(Qp& qp, ibv_event_type type) {
  ibv_async_event event{};
  event.element.qp = qp.ibv();
  event.event_type = type;
  qp.events_pushed.fetch_add(1, std::memory_order_relaxed);
  qp.context->async_events.Push(event);
}

void PublishTarget(Qp& qp) {
  uint64_t target = 0;
  if (qp.CanReceive() && !qp.IsDatagram()) {
    const bool fetches = qp.attr.max_dest_rd_atomic > 0;
    const unsigned access = qp.attr.qp_access_flags;
    target = uint64_t{qp.pd_id} << 32 | kTargetOpen | qp.attr.dest_qp_num;
    if ((access & IBV_ACCESS_REMOTE_WRITE) != 0) target |= kTargetWrite;
    if ((access & IBV_ACCESS_REMOTE_READ) != 0 && fetches) target |= kTargetRead;
    // Of several devices, each executes its atomics itself (nic/atomic_units.h).
    const bool by_peers = (access & IBV_ACCESS_REMOTE_ATOMIC) != 0 && DeviceCount() == 1;
    if (by_peers && fetches) target |= kTargetAtomic;
  }
  // Sequentially consistent with the initiator's in-flight word: see accelerator.h.
  qp.shared->target.exchange(target, std::memory_order_seq_cst);
}

void RevokeTarget(Qp& qp) {
  if (qp.shared->target.exchange(0, std::memory_order_seq_cst) == 0 || !qp.link) return;
  const SharedTables* peer = qp.link->peer_tables();
  // A peer that is gone has no thread left to wait for.
  if (peer == nullptr || qp.link->state() != Link::State::kUp) return;
  AwaitQuiet(peer->qps[QpIndex(qp.attr.dest_qp_num)].in_flight);
}

void CompleteReceive(Qp& qp, const ReceiveWqe& receive, ibv_wc_status status) {
  Deliver(*qp.recv_cq, qp.faults, [&](Cqe& cqe) {
    cqe.wr_id = receive.wr_id;
    cqe.qp_num = qp.number;
    cqe.status = status;
    cqe.opcode = IBV_WC_RECV;
  });
}

void EnterSendError(Qp& qp) {
  if (qp.IsReliable()) return EnterError(qp);
  qp.state = IBV_QPS_SQE;
  qp.requester.began = qp.requester.held_back = false;
  FlushQueues(qp);
}

bool TakeReceive(Qp& qp) {
  Responder& responder = qp.responder;
  if (responder.has_receive) return true;
  if (const fault::Plan* plan = fault::Active()) [[unlikely]] {
    fault::QpFaults& faults = qp.faults;
    const auto kind = fault::FaultKind::kReceiverNotReady;
    if (fault::Strikes(*plan, kind, faults.ordinal, faults.receives++)) return false;
  }
  responder.has_receive =
      qp.srq != nullptr ? qp.srq->Take(&responder.receive) : qp.receives.Take(&responder.receive);
  return responder.has_receive;
}

void FlushQueues(Qp& qp) {
  Requester& requester = qp.requester;
  SendQueue& queue = requester.queue;
  while (queue.done != queue.posted) {
    const SendWqe& wqe = queue.At(queue.done++);
    Deliver(*qp.send_cq, qp.faults, [&](Cqe& cqe) {
      qp.lock.AssertHeld();
      cqe.wr_id = wqe.wr_id;
      cqe.qp_num = qp.number;
      cqe.status = IBV_WC_WR_FLUSH_ERR;
      cqe.sq_freed = &queue.freed;
      cqe.sq_free_to = queue.done;
    });
  }
  queue.next = queue.posted;
  if (qp.state != IBV_QPS_ERR) return;
  Responder& responder = qp.responder;
  if (responder.has_receive) {
    responder.has_receive = false;
    CompleteReceive(qp, responder.receive, IBV_WC_WR_FLUSH_ERR);
  }
  ReceiveWqe receive;
  while (qp.receives.Take(&receive)) CompleteReceive(qp, receive, IBV_WC_WR_FLUSH_ERR);
}

void EnterError(Qp& qp) {
  if (qp.state == IBV_QPS_ERR) return;
  RevokeTarget(qp);
  EndSplitAtomics(qp);
  qp.state = IBV_QPS_ERR;
  RefuseAnswers(qp);
  qp.requester.backing_off = qp.requester.held_back = false;
  qp.requester.began = false;
  qp.requester.fetches = 0;
  FlushQueues(qp);
  if (qp.srq != nullptr) RaiseQpEvent(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

}  // namespace softverbs
