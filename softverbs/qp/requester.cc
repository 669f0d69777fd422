#include "softverbs/qp/requester.h"

#include <algorithm>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/port_state.h"
#include "softverbs/cq/held_completions.h"
#include "softverbs/qp/accelerator.h"
#include "softverbs/qp/datagram_sender.h"
#include "softverbs/qp/path.h"
#include "softverbs/qp/responder.h"
#include "softverbs/qp/scatter_gather.h"
#include "softverbs/qp/timers.h"

namespace softverbs {
namespace {

enum class Sent { kAll, kWait };

PacketHeader RequestHeader(const Qp& qp, const SendWqe& wqe, PacketType type, uint32_t payload)
    SV_REQUIRES(qp.lock) {
  PacketHeader header{};
  header.record_bytes = RecordBytes(payload);
  header.payload_bytes = payload;
  header.to_qpn = qp.attr.dest_qp_num;
  header.from_qpn = qp.number;
  header.psn = wqe.psn;
  header.type = type;
  header.flags = qp.path_flags;
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
    case IBV_WR_BIND_MW:
      return IBV_WC_BIND_MW;
    case IBV_WR_LOCAL_INV:
      return IBV_WC_LOCAL_INV;
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
  header.flags |= kPacketFirst | kPacketLast;
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
  const bool is_write = wqe.opcode == IBV_WR_RDMA_WRITE || wqe.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  PacketHeader header =
      RequestHeader(qp, wqe, is_write ? PacketType::kWrite : PacketType::kSend, payload);
  header.offset = offset;
  if (offset == 0) header.flags |= kPacketFirst;
  if (offset + payload == wqe.length) header.flags |= kPacketLast;
  if ((wqe.send_flags & IBV_SEND_SOLICITED) != 0) header.flags |= kPacketSolicited;
  if (wqe.opcode == IBV_WR_SEND_WITH_IMM || wqe.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    header.flags |= kPacketImmediate;
    header.imm = wqe.imm;
  }
  if (wqe.opcode == IBV_WR_SEND_WITH_INV) {
    header.flags |= kPacketInvalidate;
    header.imm = wqe.imm;
  }
  const MemoryTable& memory = qp.nic->memory();
  const Link::SendResult result = qp.link->Send(header, &qp.waits_for_link, [&](uint8_t* to) {
    if (!wqe.is_inline()) {
      return payload == 0 || Gather(memory, qp.pd_id, wqe.local(), offset, payload, to);
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
                                  wqe.local()};
  return Accelerate(qp, operation) ? Accelerated::kDone : Accelerated::kNo;
}

// On an unreliable connection a request is complete once it is sent, whether it arrives or not.
Sent CompleteUnanswered(Qp& qp) SV_REQUIRES(qp.lock) {
  ++qp.requester.queue.next;
  qp.requester.began = false;
  CompleteOldest(qp, IBV_WC_SUCCESS);
  return Sent::kAll;
}

bool BindOrInvalidate(Qp& qp, const SendWqe& wqe) SV_REQUIRES(qp.lock) {
  WindowTable& windows = qp.nic->windows();
  if (wqe.opcode == IBV_WR_LOCAL_INV) return windows.Invalidate(wqe.rkey, qp.number);
  return windows.Bind({.key = wqe.rkey,
                       .qpn = qp.number,
                       .pd = qp.pd_id,
                       .region = static_cast<uint32_t>(wqe.swap >> 32),
                       .addr = wqe.remote_addr,
                       .length = wqe.compare_add,
                       .access = static_cast<unsigned>(wqe.swap)});
}

// Binds or invalidates a window, once all earlier requests are complete.
Sent ExecuteLocal(Qp& qp, SendWqe& wqe) SV_REQUIRES(qp.lock) {
  SendQueue& queue = qp.requester.queue;
  if (queue.next != queue.done) return Sent::kWait;
  if (!BindOrInvalidate(qp, wqe)) {
    FailOldest(qp, IBV_WC_MW_BIND_ERR);
    return Sent::kWait;
  }
  ++queue.next;
  CompleteOldest(qp, IBV_WC_SUCCESS);
  return Sent::kAll;
}

// The port is down: nothing is sent. What was sent before has a timer of its own.
Sent TransmitWithoutPort(Qp& qp, SendWqe& wqe) SV_REQUIRES(qp.lock) {
  if (!qp.IsReliable()) return CompleteUnanswered(qp);
  if (qp.requester.queue.next != qp.requester.queue.done) return Sent::kWait;
  wqe.psn = qp.requester.next_psn;  // what to go back to
  HandleNotReached(qp);
  return Sent::kWait;
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
  if (wqe.is_local()) [[unlikely]]
    return ExecuteLocal(qp, wqe);
  if (qp.link->state() == Link::State::kDown) {
    if (!qp.IsReliable()) return CompleteUnanswered(qp);
    if (oldest) HandlePeerGone(qp);
    return Sent::kWait;
  }
  // What began is sent to its end, as the peer awaits the rest.
  if (AnyPortDown() && IsPortDown(PathPort(qp)) && !qp.requester.began) [[unlikely]]
    return TransmitWithoutPort(qp, wqe);
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

void TransmitRequests(Qp& qp) SV_REQUIRES(qp.lock) {
  SendQueue& queue = qp.requester.queue;
  // Sends answers first: what the application posts after it saw a request must follow its answer.
  if (!qp.responder.answers.empty() && !SendAnswers(qp)) return;
  while (qp.state == IBV_QPS_RTS && !qp.requester.backing_off && queue.next != queue.posted) {
    if (TransmitOne(qp, queue.At(queue.next)) == Sent::kWait) return;
  }
}

}  // namespace

void Transmit(Qp& qp) {
  if (qp.IsDatagram()) return TransmitDatagrams(qp);
  const bool remote = qp.link && qp.link->remote();
  if (remote) LimitLife(qp);
  TransmitRequests(qp);
  if (remote) AwaitAnswers(qp);
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
