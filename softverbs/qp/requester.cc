#include "softverbs/qp/requester.h"

#include <algorithm>

#include "softverbs/base/clock.h"
#include "softverbs/cq/held_completions.h"
#include "softverbs/qp/accelerator.h"
#include "softverbs/qp/datagram_sender.h"
#include "softverbs/qp/responder.h"
#include "softverbs/qp/scatter_gather.h"
#include "softverbs/qp/timers.h"

namespace softverbs {
namespace {

enum class Sent { kAll, kWait };

SgeList LocalList(SendWqe& wqe) { return {wqe.sges(), wqe.sge_count}; }

PacketHeader RequestHeader(const Qp& qp, const SendWqe& wqe, PacketType type, uint32_t payload)
    SV_REQUIRES(qp.lock) {
  PacketHeader header{};
  header.record_bytes = RecordBytes(payload);
  header.payload_bytes = payload;
  header.to_qpn = qp.attr.dest_qp_num;
  header.from_qpn = qp.number;
  header.psn = wqe.psn;
  header.type = type;
  header.epoch = qp.requester.epoch;
  header.rkey = wqe.rkey;
  header.remote_addr = wqe.remote_addr;
  header.message_bytes = wqe.length;
  header.operand = wqe.compare_add;
  header.swap = wqe.swap;
  return header;
}

ibv_wc_opcode CompletionOpcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}

// Sends a READ or atomic: one packet, whose answer is awaited.
Sent SendFetch(Qp& qp, SendWqe& wqe) SV_REQUIRES(qp.lock) {
  Requester& requester = qp.requester;
  if (qp.attr.max_rd_atomic == 0) {
    if (requester.queue.next == requester.queue.done) FailOldest(qp, IBV_WC_LOC_QP_OP_ERR);
    return Sent::kWait;
  }
  if (requester.fetches >= qp.attr.max_rd_atomic) return Sent::kWait;
  const PacketType type = wqe.opcode == IBV_WR_RDMA_READ            ? PacketType::kRead
                          : wqe.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? PacketType::kCompareSwap
                                                                    : PacketType::kFetchAdd;
  PacketHeader header = RequestHeader(qp, wqe, type, 0);
  header.flags = kPacketFirst | kPacketLast;
  if (wqe.faults.tear) [[unlikely]] {
    header.flags |= kPacketTear;
    header.operand = wqe.faults.tear_seed;
    header.swap = static_cast<uint64_t>(wqe.faults.tear_ns);
  }
  if (qp.link->Send(header, &qp.waits_for_link) != Link::SendResult::kSent) return Sent::kWait;
  wqe.received = 0;
  ++requester.fetches;
  return Sent::kAll;
}

// Sends one segment of a SEND or WRITE.
Sent SendSegment(Qp& qp, SendWqe& wqe) SV_REQUIRES(qp.lock) {
  Requester& requester = qp.requester;
  const uint32_t offset = requester.sent_bytes;
  const uint32_t payload = std::min(kMaxPayload, wqe.length - offset);
  const bool is_send = wqe.opcode == IBV_WR_SEND || wqe.opcode == IBV_WR_SEND_WITH_IMM;
  PacketHeader header =
      RequestHeader(qp, wqe, is_send ? PacketType::kSend : PacketType::kWrite, payload);
  header.offset = offset;
  if (offset == 0) header.flags |= kPacketFirst;
  if (offset + payload == wqe.length) header.flags |= kPacketLast;
  if ((wqe.send_flags & IBV_SEND_SOLICITED) != 0) header.flags |= kPacketSolicited;
  if (wqe.opcode == IBV_WR_SEND_WITH_IMM || wqe.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    header.flags |= kPacketImmediate;
    header.imm = wqe.imm;
  }
  const MemoryTable& memory = qp.nic->memory();
  const Link::SendResult result = qp.link->Send(header, &qp.waits_for_link, [&](uint8_t* to) {
    if (!wqe.is_inline()) {
      return payload == 0 || Gather(memory, qp.pd_id, LocalList(wqe), offset, payload, to);
    }
    memcpy(to, wqe.inline_data() + offset, payload);
    return true;
  });
  if (result == Link::SendResult::kNotFilled) {
    // The memory was deregistered since the post. Reported when the request's turn comes.
    wqe.error = IBV_WC_LOC_PROT_ERR;
    if (requester.queue.next == requester.queue.done) FailOldest(qp, wqe.error);
  }
  if (result != Link::SendResult::kSent) return Sent::kWait;
  requester.sent_bytes += payload;
  return Sent::kAll;
}

Sent SendPackets(Qp& qp, SendWqe& wqe) SV_REQUIRES(qp.lock) {
  Requester& requester = qp.requester;
  if (!requester.began) {
    requester.began = true;
    requester.sent_bytes = 0;
    wqe.psn = requester.next_psn++;
  }
  if (wqe.is_fetch()) return SendFetch(qp, wqe);
  do {
    if (SendSegment(qp, wqe) == Sent::kWait) return Sent::kWait;
  } while (requester.sent_bytes < wqe.length);
  return Sent::kAll;
}

enum class Accelerated { kDone, kWait, kNo };

Accelerated TryAccelerate(Qp& qp, SendWqe& wqe) SV_REQUIRES(qp.lock) {
  const SendQueue& queue = qp.requester.queue;
  if (qp.requester.began || !CanAccelerate(qp, wqe.opcode, wqe.rkey, wqe.length)) {
    return Accelerated::kNo;
  }
  // Earlier requests are with the peer's NIC, and this one must not overtake them. A READ waits for
  // their acknowledgement, rather than give the peer's CPU the work.
  if (queue.next != queue.done) {
    return wqe.is_fetch() ? Accelerated::kWait : Accelerated::kNo;
  }
  if (wqe.is_fetch() && qp.attr.max_rd_atomic == 0) return Accelerated::kNo;
  const RemoteOperation operation{wqe.opcode,
                                  wqe.remote_addr,
                                  wqe.rkey,
                                  wqe.length,
                                  wqe.compare_add,
                                  wqe.swap,
                                  wqe.is_inline() ? wqe.inline_data() : nullptr,
                                  LocalList(wqe)};
  return Accelerate(qp, operation) ? Accelerated::kDone : Accelerated::kNo;
}

// On an unreliable connection a request is complete once it is sent, whether it arrives or not.
Sent CompleteUnanswered(Qp& qp) SV_REQUIRES(qp.lock) {
  ++qp.requester.queue.next;
  qp.requester.began = false;
  CompleteOldest(qp, IBV_WC_SUCCESS);
  return Sent::kAll;
}

// Transmits the request at queue.next.
Sent TransmitOne(Qp& qp, SendWqe& wqe) SV_REQUIRES(qp.lock) {
  SendQueue& queue = qp.requester.queue;
  const bool oldest = queue.next == queue.done;
  if (wqe.faults.delay_ns != 0) [[unlikely]] {
    HoldBack(qp, wqe.faults.delay_ns);
    return Sent::kWait;
  }
  if (wqe.error != IBV_WC_SUCCESS) {
    if (oldest) FailOldest(qp, wqe.error);
    return Sent::kWait;
  }
  if ((wqe.send_flags & IBV_SEND_FENCE) != 0 && qp.requester.fetches > 0) return Sent::kWait;
  if (qp.link->state() == Link::State::kDown) {
    if (!qp.IsReliable()) return CompleteUnanswered(qp);
    if (oldest) HandlePeerGone(qp);
    return Sent::kWait;
  }
  switch (TryAccelerate(qp, wqe)) {
    case Accelerated::kWait:
      return Sent::kWait;
    case Accelerated::kDone:
      ++queue.next;
      CompleteOldest(qp, IBV_WC_SUCCESS);
      return Sent::kAll;
    case Accelerated::kNo:
      break;
  }
  if (SendPackets(qp, wqe) == Sent::kWait) return Sent::kWait;
  if (!qp.IsReliable()) return CompleteUnanswered(qp);
  ++queue.next;
  qp.requester.began = false;
  return Sent::kAll;
}

bool Before(uint32_t psn, uint32_t other) { return static_cast<int32_t>(psn - other) < 0; }

// Applies a fault: the request was executed, but its answer does not arrive.
bool LosesAnswer(Qp& qp, SendWqe& wqe) SV_REQUIRES(qp.lock) {
  if (!wqe.faults.lost_ack) [[likely]]
    return false;
  fault::CountOne(fault::Kind::kLostAck);
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
  if (!Scatter(qp.nic->memory(), qp.pd_id, LocalList(*wqe), header.offset, header.payload_bytes,
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
  if (!Scatter(qp.nic->memory(), qp.pd_id, LocalList(*wqe), 0, sizeof(original),
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

// With a real adapter the packets would be dropped, and resent when the acknowledgement timer runs
// out.
void HandleNotConnected(Qp& qp) SV_REQUIRES(qp.lock) {
  constexpr int64_t kWithoutTimeoutNs = 10'000'000;
  if (qp.attr.timeout == 0) return BackOff(qp, kWithoutTimeoutNs);
  if (qp.requester.retries_left-- == 0) return FailOldest(qp, IBV_WC_RETRY_EXC_ERR);
  BackOff(qp, AckTimeoutNs(qp.attr.timeout));
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
      return HandleNotConnected(qp);
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

void Transmit(Qp& qp) {
  if (qp.IsDatagram()) return TransmitDatagrams(qp);
  SendQueue& queue = qp.requester.queue;
  // Sends answers first: what the application posts after it saw a request must follow its answer.
  if (!qp.responder.answers.empty() && !SendAnswers(qp)) return;
  while (qp.state == IBV_QPS_RTS && !qp.requester.backing_off && queue.next != queue.posted) {
    if (TransmitOne(qp, queue.At(queue.next)) == Sent::kWait) return;
  }
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
  if (qp.requester.peer_awaited) return FailOldest(qp, IBV_WC_RETRY_EXC_ERR);
  qp.requester.peer_awaited = true;
  const int64_t tries = qp.attr.retry_cnt + 1;
  const bool bounded = qp.attr.timeout != 0;
  BackOff(qp, bounded ? std::min(tries * AckTimeoutNs(qp.attr.timeout), kWaitMaxNs) : kWaitMaxNs);
}

uint32_t CountFetchesInFlight(Qp& qp) {
  SendQueue& queue = qp.requester.queue;
  uint32_t count = 0;
  for (uint32_t i = queue.done; i != queue.next; ++i) count += queue.At(i).is_fetch();
  return count;
}

void CompleteOldest(Qp& qp, ibv_wc_status status) {
  Requester& requester = qp.requester;
  SendQueue& queue = requester.queue;
  const SendWqe& wqe = queue.At(queue.done++);
  requester.peer_awaited = false;
  requester.retries_left = qp.attr.retry_cnt;
  requester.rnr_retries_left = qp.attr.rnr_retry;
  const bool signalled = qp.signal_all || (wqe.send_flags & IBV_SEND_SIGNALED) != 0;
  if (!signalled && status == IBV_WC_SUCCESS) return;
  Deliver(*qp.send_cq, qp.faults, [&](Cqe& cqe) {
    qp.lock.AssertHeld();
    cqe.wr_id = wqe.wr_id;
    cqe.qp_num = qp.number;
    cqe.status = status;
    cqe.opcode = CompletionOpcode(wqe.opcode);
    cqe.byte_len = wqe.is_fetch() ? wqe.length : 0;
    cqe.sq_freed = &queue.freed;
    cqe.sq_free_to = queue.done;
  });
}

void FailOldest(Qp& qp, ibv_wc_status status) {
  CompleteOldest(qp, status);
  EnterSendError(qp);
}

void NoteDrained(Qp& qp) {
  const SendQueue& queue = qp.requester.queue;
  if (qp.state != IBV_QPS_SQD || !qp.notify_drained || queue.done != queue.next) return;
  qp.notify_drained = false;
  RaiseQpEvent(qp, IBV_EVENT_SQ_DRAINED);
}

}  // namespace softverbs
