// The answers to requests: acknowledgements, data and refusals. Declared in requester.h.

#include <algorithm>

#include "softverbs/fault/faults.h"
#include "softverbs/qp/path.h"
#include "softverbs/qp/requester.h"
#include "softverbs/qp/scatter_gather.h"
#include "softverbs/qp/timers.h"

namespace softverbs {
namespace {

bool Before(uint32_t psn, uint32_t other) { return static_cast<int32_t>(psn - other) < 0; }

// Applies a fault: the request was executed, but its answer does not arrive.
bool LosesAnswer(Qp& qp, SendWqe& wqe) SV_REQUIRES(qp.lock) {
  if (!wqe.faults.lost_ack) [[likely]]
    return false;
  fault::CountOne(fault::FaultKind::kLostAck);
  FailOldest(qp, IBV_WC_RETRY_EXC_ERR);
  return true;
}

// Completes the requests before `psn`: any answer to `psn` acknowledges them.
void CompleteBefore(Qp& qp, uint32_t psn) SV_REQUIRES(qp.lock) {
  SendQueue& queue = qp.requester.queue;
  while (queue.done != queue.next) {
    SendWqe& wqe = queue.At(queue.done);
    if (wqe.is_fetch() || !Before(wqe.psn, psn) || LosesAnswer(qp, wqe)) return;
    CompleteOldest(qp, IBV_WC_SUCCESS);
  }
}

// Returns the oldest request if `header` answers it: it must have been sent, at least in part, in
// the current epoch.
SendWqe* Answered(Qp& qp, const PacketHeader& header) SV_REQUIRES(qp.lock) {
  Requester& requester = qp.requester;
  SendQueue& queue = requester.queue;
  if (header.epoch != requester.epoch || requester.backing_off) return nullptr;
  const bool sent = queue.done != queue.next || (queue.done != queue.posted && requester.began);
  if (!sent) return nullptr;
  SendWqe& wqe = queue.At(queue.done);
  return wqe.psn == header.psn ? &wqe : nullptr;
}

void HandleReadAnswer(Qp& qp, const PacketHeader& header, const uint8_t* payload)
    SV_REQUIRES(qp.lock) {
  SendWqe* wqe = Answered(qp, header);
  if (wqe == nullptr || wqe->opcode != IBV_WR_RDMA_READ || LosesAnswer(qp, *wqe)) return;
  if (header.offset != wqe->received || header.payload_bytes > wqe->length - wqe->received) {
    return FailOldest(qp, IBV_WC_BAD_RESP_ERR);
  }
  if (!Scatter(qp.nic->memory(), qp.pd_id, wqe->local(), header.offset, header.payload_bytes,
               payload)) {
    return FailOldest(qp, IBV_WC_LOC_PROT_ERR);
  }
  wqe->received += header.payload_bytes;
  if (wqe->received < wqe->length) return;
  --qp.requester.fetches;
  CompleteOldest(qp, IBV_WC_SUCCESS);
}

void HandleAtomicAnswer(Qp& qp, const PacketHeader& header) SV_REQUIRES(qp.lock) {
  SendWqe* wqe = Answered(qp, header);
  if (wqe == nullptr || !wqe->is_fetch() || wqe->opcode == IBV_WR_RDMA_READ ||
      LosesAnswer(qp, *wqe)) {
    return;
  }
  const uint64_t original = header.operand;
  if (!Scatter(qp.nic->memory(), qp.pd_id, wqe->local(), 0, sizeof(original),
               reinterpret_cast<const uint8_t*>(&original))) {
    return FailOldest(qp, IBV_WC_LOC_PROT_ERR);
  }
  --qp.requester.fetches;
  CompleteOldest(qp, IBV_WC_SUCCESS);
}

// Goes back to the oldest request and waits. The peer dropped it and those after it.
void BackOff(Qp& qp, int64_t wait_ns) SV_REQUIRES(qp.lock) {
  Requester& requester = qp.requester;
  requester.next_psn = requester.queue.At(requester.queue.done).psn;
  requester.queue.next = requester.queue.done;
  requester.began = false;
  requester.fetches = 0;
  ++requester.epoch;
  requester.backing_off = true;
  ResumeAfter(qp, wait_ns);
}

void HandleRnr(Qp& qp, uint32_t timer_code) SV_REQUIRES(qp.lock) {
  constexpr uint8_t kRetryForEver = 7;
  if (qp.attr.rnr_retry != kRetryForEver && qp.requester.rnr_retries_left-- == 0) {
    return FailOldest(qp, IBV_WC_RNR_RETRY_EXC_ERR);
  }
  BackOff(qp, RnrTimerNs(timer_code));
}

// Returns whether the peer gave up a later request, and with it the answer to the oldest one.
bool LostItsAnswer(Qp& qp, const PacketHeader& header) SV_REQUIRES(qp.lock) {
  const SendQueue& queue = qp.requester.queue;
  return header.nak >= NakCode::kNoQueuePair && !qp.requester.backing_off &&
         queue.done != queue.next && Before(qp.requester.queue.At(queue.done).psn, header.psn);
}

void HandleNak(Qp& qp, const PacketHeader& header) SV_REQUIRES(qp.lock) {
  if (LostItsAnswer(qp, header)) {
    if (header.nak == NakCode::kNoQueuePair) return HandlePeerGone(qp);
    return FailOldest(qp, IBV_WC_RETRY_EXC_ERR);
  }
  if (Answered(qp, header) == nullptr) return;
  switch (header.nak) {
    case NakCode::kReceiverNotReady:
      return HandleRnr(qp, header.imm);
    case NakCode::kNotConnected:
      return HandleNotReached(qp);
    case NakCode::kInvalidRequest:
      return FailOldest(qp, IBV_WC_REM_INV_REQ_ERR);
    case NakCode::kRemoteAccess:
      return FailOldest(qp, IBV_WC_REM_ACCESS_ERR);
    case NakCode::kRemoteOperational:
      return FailOldest(qp, IBV_WC_REM_OP_ERR);
    case NakCode::kNoQueuePair:
      return HandlePeerGone(qp);
    default:
      return FailOldest(qp, IBV_WC_RETRY_EXC_ERR);
  }
}

}  // namespace

// With a real adapter the packets would be dropped, and resent when the acknowledgement timer runs
// out.
void HandleNotReached(Qp& qp) {
  constexpr int64_t kWithoutTimeoutNs = 10'000'000;
  if (qp.attr.timeout == 0) return BackOff(qp, kWithoutTimeoutNs);
  if (qp.requester.retries_left-- == 0) {
    if (!MigrateFromDeadPath(qp, /*last=*/true)) return FailOldest(qp, IBV_WC_RETRY_EXC_ERR);
    return BackOff(qp, 0);
  }
  BackOff(qp, AckTimeoutNs(qp.attr.timeout));
}

void HandleAnswer(Qp& qp, const PacketHeader& header, const uint8_t* payload) {
  if (qp.state != IBV_QPS_RTS && qp.state != IBV_QPS_SQD) return;
  if (header.epoch == qp.requester.epoch) {
    const bool inclusive = header.type == PacketType::kAck;
    CompleteBefore(qp, header.psn + (inclusive ? 1 : 0));
    if (header.type == PacketType::kReadResponse) HandleReadAnswer(qp, header, payload);
    if (header.type == PacketType::kAtomicResponse) HandleAtomicAnswer(qp, header);
    if (header.type == PacketType::kNak) HandleNak(qp, header);
  }
  NoteDrained(qp);
  Transmit(qp);
}

void HandlePeerGone(Qp& qp) {
  // retry_cnt and timeout may add up to a minute. This much is enough for tools that end.
  constexpr int64_t kWaitMaxNs = 500'000'000;
  const bool remote = qp.link->remote();
  if (qp.requester.peer_awaited) {
    // After HandleSilence, the end of the link does not cut the wait short.
    if (remote && qp.requester.backing_off) return;
    return FailOldest(qp, IBV_WC_RETRY_EXC_ERR);
  }
  qp.requester.peer_awaited = true;
  const int64_t tries = qp.attr.retry_cnt + 1;
  const bool bounded = qp.attr.timeout != 0;
  int64_t wait_ns =
      bounded ? std::min(tries * AckTimeoutNs(qp.attr.timeout), kWaitMaxNs) : kWaitMaxNs;
  if (remote && qp.link->state() == Link::State::kDown) {
    wait_ns = std::max(wait_ns, qp.link->QuietInNs());
  }
  BackOff(qp, wait_ns);
}

void HandleSilence(Qp& qp) {
  qp.nic->remote_links().Abort(*qp.link);
  if (qp.state != IBV_QPS_RTS) return FailOldest(qp, IBV_WC_RETRY_EXC_ERR);  // nothing is resent
  qp.requester.peer_awaited = true;
  BackOff(qp, qp.link->QuietInNs());
}

}  // namespace softverbs
