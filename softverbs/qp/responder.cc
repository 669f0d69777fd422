#include "softverbs/qp/responder.h"

#include <algorithm>

#include "softverbs/base/port_state.h"
#include "softverbs/base/shared_copy.h"
#include "softverbs/base/stats.h"
#include "softverbs/fault/faults.h"
#include "softverbs/qp/atomic_of_nic.h"
#include "softverbs/qp/deliver_receive.h"
#include "softverbs/qp/explain_refusal.h"
#include "softverbs/qp/path.h"
#include "softverbs/qp/remote_memory.h"
#include "softverbs/qp/scatter_gather.h"
#include "softverbs/qp/split_atomic.h"
#include "softverbs/qp/tear_answer.h"

namespace softverbs {
namespace {

// Requesters respect max_rd_atomic. Only a hostile one makes more answers pending.
constexpr size_t kMaxAnswers = 1024;

Answer AnswerTo(const PacketHeader& request, PacketType type) {
  Answer answer{};
  answer.type = type;
  answer.psn = request.psn;
  answer.epoch = request.epoch;
  return answer;
}

void Acknowledge(Qp& qp, Link& link, const PacketHeader& request) SV_REQUIRES(qp.lock) {
  if (!qp.IsReliable()) return;
  std::deque<Answer>& answers = qp.responder.answers;
  if (!answers.empty() && answers.back().type == PacketType::kAck &&
      answers.back().epoch == request.epoch) {
    answers.back().psn = request.psn;
  } else {
    answers.push_back(AnswerTo(request, PacketType::kAck));
  }
  if (!link.late_acks().Take(qp.number)) SendAnswers(qp);
}

// An unreliable connection loses the message without notice (IBTA 9.9.3, class D). The next message
// uses the receive that this one took.
void Drop(Qp& qp) SV_REQUIRES(qp.lock) { qp.responder.in_message = false; }

// Refuses the request. The requester will repeat it or give up.
void Refuse(Qp& qp, const PacketHeader& request, NakCode code) SV_REQUIRES(qp.lock) {
  if (!qp.IsReliable()) return Drop(qp);
  Answer nak = AnswerTo(request, PacketType::kNak);
  nak.nak = code;
  nak.imm = qp.attr.min_rnr_timer;
  qp.responder.answers.push_back(nak);
  qp.responder.refused = true;
  qp.responder.in_message = false;
  SendAnswers(qp);
}

void EmitNak(Link& link, const Qp& qp, const PacketHeader& request, NakCode code) {
  PacketHeader nak{};
  nak.record_bytes = RecordBytes(0);
  nak.to_qpn = request.from_qpn;
  nak.from_qpn = qp.number;
  nak.psn = request.psn;
  nak.epoch = request.epoch;
  nak.type = PacketType::kNak;
  nak.nak = code;
  if (link.refusals().size() < kMaxAnswers) link.refusals().push_back(nak);
}

// The port is down, so the request does not arrive. Who sent it is told at once, and sends it again
// when a real one would (HandleNotReached).
void Miss(Qp& qp, Link& link, const PacketHeader& request) SV_REQUIRES(qp.lock) {
  if (!qp.IsReliable()) return Drop(qp);
  qp.responder.refused = true;
  qp.responder.in_message = false;
  EmitNak(link, qp, request, NakCode::kNotConnected);
}

// Refuses for good: this end goes to the error state too. EnterError drops the answers, but the
// refusal must still leave. So it goes by the link's own list, behind what was sent.
void Fail(Qp& qp, Link& link, const PacketHeader& request, NakCode code) SV_REQUIRES(qp.lock) {
  if (qp.IsReliable()) {
    SendAnswers(qp);
    EmitNak(link, qp, request, code);
  }
  EnterError(qp);
}

void FailReceive(Qp& qp, Link& link, const PacketHeader& request, ibv_wc_status status,
                 NakCode code) SV_REQUIRES(qp.lock) {
  if (!qp.IsReliable() && status == IBV_WC_LOC_LEN_ERR) return Drop(qp);
  qp.responder.has_receive = false;
  CompleteReceive(qp, qp.responder.receive, status);
  Fail(qp, link, request, code);
}

// IBTA: access violations and malformed requests raise an affiliated event at the responder.
void FailWithEvent(Qp& qp, Link& link, const PacketHeader& request, NakCode code)
    SV_REQUIRES(qp.lock) {
  if (code == NakCode::kRemoteAccess) ExplainRefusal(qp, request);
  if (!qp.IsReliable()) return Drop(qp);
  Fail(qp, link, request, code);
  RaiseQpEvent(qp, code == NakCode::kRemoteAccess ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
}

// Segments arrive in order and without gaps; anything else is a broken or hostile peer.
bool IsNextSegment(const Responder& responder, const PacketHeader& request) {
  const bool first = (request.flags & kPacketFirst) != 0;
  const bool last = (request.flags & kPacketLast) != 0;
  const uint32_t expected_offset = first ? 0 : responder.received;
  return first != responder.in_message && request.offset == expected_offset &&
         request.message_bytes <= kMaxMessage &&
         request.payload_bytes <= request.message_bytes - expected_offset &&
         last == (expected_offset + request.payload_bytes == request.message_bytes) &&
         (last || request.payload_bytes > 0);
}

void EndMessage(Qp& qp) SV_REQUIRES(qp.lock) {
  ++qp.responder.expected_psn;
  qp.responder.in_message = false;
}

void BeginOrContinue(Responder& responder, const PacketHeader& request) {
  if ((request.flags & kPacketFirst) != 0) responder.received = 0;
  responder.in_message = true;
  responder.received += request.payload_bytes;
}

// Invalidates the window that a SEND names, if it names one. Returns false if it may not.
bool InvalidateWindow(Qp& qp, const PacketHeader& request) SV_REQUIRES(qp.lock) {
  if (!qp.IsReliable() || (request.flags & kPacketInvalidate) == 0) return true;
  return qp.nic->windows().Invalidate(request.imm, qp.number);
}

void HandleSend(Qp& qp, Link& link, const PacketHeader& request, const uint8_t* payload)
    SV_REQUIRES(qp.lock) {
  Responder& responder = qp.responder;
  if (!TakeReceive(qp)) return Refuse(qp, request, NakCode::kReceiverNotReady);
  const SgeList list{responder.receive.sges, responder.receive.sge_count};
  if (TotalLength(list) < request.message_bytes) {
    return FailReceive(qp, link, request, IBV_WC_LOC_LEN_ERR, NakCode::kInvalidRequest);
  }
  if (request.payload_bytes > 0 && !Scatter(qp.nic->memory(), qp.ReceivePd(), list, request.offset,
                                            request.payload_bytes, payload)) {
    return FailReceive(qp, link, request, IBV_WC_LOC_PROT_ERR, NakCode::kRemoteOperational);
  }
  BeginOrContinue(responder, request);
  if ((request.flags & kPacketLast) == 0) return;
  if (!InvalidateWindow(qp, request)) {
    ExplainRefusal(qp, request);
    return FailReceive(qp, link, request, IBV_WC_MW_BIND_ERR, NakCode::kRemoteAccess);
  }
  EndMessage(qp);
  Acknowledge(qp, link, request);
  DeliverReceive(qp, request, IBV_WC_RECV, request.message_bytes);
}

// Writes one segment of a WRITE. Checks the whole message, because the region may be deregistered
// between two segments. Returns false if the key does not allow it.
bool CopyToRemote(Qp& qp, const PacketHeader& request, const uint8_t* payload)
    SV_REQUIRES(qp.lock) {
  const RemoteMemory to(qp, request.rkey, request.remote_addr, request.message_bytes,
                        IBV_ACCESS_REMOTE_WRITE);
  if (to.at() == nullptr) return false;
  CopyToShared(to.at() + request.offset, payload, request.payload_bytes);
  return true;
}

void HandleWrite(Qp& qp, Link& link, const PacketHeader& request, const uint8_t* payload)
    SV_REQUIRES(qp.lock) {
  if ((qp.attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) == 0) {
    return FailWithEvent(qp, link, request, NakCode::kRemoteAccess);
  }
  if (request.message_bytes > 0 && !CopyToRemote(qp, request, payload)) {
    return FailWithEvent(qp, link, request, NakCode::kRemoteAccess);
  }
  const bool last = (request.flags & kPacketLast) != 0;
  const bool takes_receive = last && (request.flags & kPacketImmediate) != 0;
  if (takes_receive && !TakeReceive(qp)) return Refuse(qp, request, NakCode::kReceiverNotReady);
  BeginOrContinue(qp.responder, request);
  if (!last) return;
  EndMessage(qp);
  Acknowledge(qp, link, request);
  if (takes_receive) DeliverReceive(qp, request, IBV_WC_RECV_RDMA_WITH_IMM, request.message_bytes);
}

// Tears the READ if the requester's plan or ours says so.
void TearAnswer(Qp& qp, const PacketHeader& request, Answer* answer) SV_REQUIRES(qp.lock) {
  constexpr uint64_t kLongestNs = 1'000'000'000;  // the peer's number
  if ((request.flags & kPacketTear) != 0) {
    answer->tear_seed = request.operand;
    answer->tear_ns = static_cast<int64_t>(std::min(request.swap, kLongestNs));
    answer->tear = true;
  } else if (const fault::Plan* plan = fault::Active()) {
    const fault::FaultKind kind = fault::FaultKind::kTearRead;
    const uint64_t index = qp.faults.reads++;
    answer->tear_seed = fault::Draw(*plan, kind, qp.faults.ordinal, index);
    answer->tear_ns = (*plan)[kind].ns;
    answer->tear = fault::Strikes(*plan, kind, qp.faults.ordinal, index);
  }
}

void HandleRead(Qp& qp, Link& link, const PacketHeader& request) SV_REQUIRES(qp.lock) {
  if (qp.attr.max_dest_rd_atomic == 0 || qp.responder.answers.size() >= kMaxAnswers ||
      request.message_bytes > kMaxMessage) {
    return FailWithEvent(qp, link, request, NakCode::kInvalidRequest);
  }
  const bool allowed =
      (qp.attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) != 0 &&
      (request.message_bytes == 0 || RemoteMemory(qp, request.rkey, request.remote_addr,
                                                  request.message_bytes, IBV_ACCESS_REMOTE_READ)
                                             .at() != nullptr);
  if (!allowed) return FailWithEvent(qp, link, request, NakCode::kRemoteAccess);
  Answer answer = AnswerTo(request, PacketType::kReadResponse);
  answer.rkey = request.rkey;
  answer.remote_addr = request.remote_addr;
  answer.length = request.message_bytes;
  TearAnswer(qp, request, &answer);
  qp.responder.answers.push_back(answer);
  EndMessage(qp);
  SendAnswers(qp);
}

// Executes the atomic and returns true, with the original value in the answer. Returns false if the
// key does not allow it.
bool ExecuteAtomic(Qp& qp, const PacketHeader& request, Answer* answer) SV_REQUIRES(qp.lock) {
  if (DeviceCount() > 1) [[unlikely]]
    return BeginSplitAtomic(qp, request, answer);
  const RemoteMemory where(qp, request.rkey, request.remote_addr, sizeof(uint64_t),
                           IBV_ACCESS_REMOTE_ATOMIC);
  if (where.at() == nullptr || reinterpret_cast<uintptr_t>(where.at()) % 8 != 0) return false;
  auto* word = reinterpret_cast<uint64_t*>(where.at());
  uint64_t* const original = &answer->value;
  *original = request.operand;
  // Locked instructions: atomic also for the CPU's own accesses (IBV_ATOMIC_GLOB).
  const fault::Plan* plan = fault::Active();
  if (plan != nullptr && plan->atomics != fault::Atomics::kGlobal) [[unlikely]] {
    *original = AtomicOfNic(word, request);
  } else if (request.type == PacketType::kCompareSwap) {
    __atomic_compare_exchange_n(word, original, request.swap, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
  } else {
    *original = __atomic_fetch_add(word, request.operand, __ATOMIC_SEQ_CST);
  }
  return true;
}

void HandleAtomic(Qp& qp, Link& link, const PacketHeader& request) SV_REQUIRES(qp.lock) {
  if (qp.attr.max_dest_rd_atomic == 0 || qp.responder.answers.size() >= kMaxAnswers ||
      request.remote_addr % 8 != 0) {
    return FailWithEvent(qp, link, request, NakCode::kInvalidRequest);
  }
  Answer answer = AnswerTo(request, PacketType::kAtomicResponse);
  const bool allowed = (qp.attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) != 0;
  if (!allowed || !ExecuteAtomic(qp, request, &answer)) {
    return FailWithEvent(qp, link, request, NakCode::kRemoteAccess);
  }
  qp.responder.answers.push_back(answer);
  EndMessage(qp);
  SendAnswers(qp);
}

PacketHeader AnswerHeader(const Qp& qp, const Answer& answer, uint32_t payload)
    SV_REQUIRES(qp.lock) {
  PacketHeader header{};
  header.record_bytes = RecordBytes(payload);
  header.payload_bytes = payload;
  header.to_qpn = qp.attr.dest_qp_num;
  header.from_qpn = qp.number;
  header.psn = answer.psn;
  header.type = answer.type;
  header.flags = qp.path_flags;
  header.epoch = answer.epoch;
  header.nak = answer.nak;
  header.imm = answer.imm;
  header.offset = answer.sent;
  header.message_bytes = answer.length;
  header.operand = answer.value;
  return header;
}

enum class Step { kDone, kMore, kWait, kFailed };

// Sends one packet of the answer, with `payload` bytes from `from`.
Step SendPacket(Qp& qp, Answer& answer, uint32_t payload, const uint8_t* from)
    SV_REQUIRES(qp.lock) {
  const Link::SendResult result =
      qp.link->Send(AnswerHeader(qp, answer, payload), &qp.waits_for_link, [&](uint8_t* to) {
        if (payload > 0) CopyFromShared(to, from, payload);
        return true;
      });
  if (result != Link::SendResult::kSent) return Step::kWait;
  if (answer.type == PacketType::kAck) Count(stats.acks);
  answer.sent += payload;
  const bool more = answer.type == PacketType::kReadResponse && answer.sent < answer.length;
  return more ? Step::kMore : Step::kDone;
}

Step SendTornPacket(Qp& qp, Answer& answer) SV_REQUIRES(qp.lock) {
  if (!PrepareTorn(qp, answer)) return Step::kWait;
  if (answer.type == PacketType::kNak) return Step::kMore;
  const uint32_t payload = std::min(kMaxPayload, answer.torn->end() - answer.sent);
  return SendPacket(qp, answer, payload, answer.torn->At(answer.sent));
}

Step SendAnswer(Qp& qp, Answer& answer) SV_REQUIRES(qp.lock) {
  if (answer.atomic && !answer.atomic->IsDone()) [[unlikely]]
    return Step::kWait;
  const bool read = answer.type == PacketType::kReadResponse;
  const uint32_t payload = read ? std::min(kMaxPayload, answer.length - answer.sent) : 0;
  if (payload == 0) return SendPacket(qp, answer, 0, nullptr);
  if (answer.tear) [[unlikely]]
    return SendTornPacket(qp, answer);
  // Checked at every packet, because the region may be deregistered in between.
  const RemoteMemory from(qp, answer.rkey, answer.remote_addr + answer.sent, payload,
                          IBV_ACCESS_REMOTE_READ);
  return from.at() == nullptr ? Step::kFailed : SendPacket(qp, answer, payload, from.at());
}

// Handles a request on an unreliable connection. The first packet of a message may have any number,
// because others may have been lost.
void HandleUnreliable(Qp& qp, Link& link, const PacketHeader& request, const uint8_t* payload)
    SV_REQUIRES(qp.lock) {
  Responder& responder = qp.responder;
  if (!qp.CanReceive() || qp.link.get() != &link || request.from_qpn != qp.attr.dest_qp_num) {
    return EmitNak(link, qp, request, NakCode::kNoQueuePair);  // heard if the other is reliable
  }
  FollowPeer(qp, request);
  if ((request.flags & kPacketFirst) != 0) {
    responder.in_message = false;
    responder.expected_psn = request.psn;
  }
  if (request.psn != responder.expected_psn || !IsNextSegment(responder, request)) return Drop(qp);
  if (request.type == PacketType::kSend) HandleSend(qp, link, request, payload);
  if (request.type == PacketType::kWrite) HandleWrite(qp, link, request, payload);
}

}  // namespace

bool SendAnswers(Qp& qp) {
  std::deque<Answer>& answers = qp.responder.answers;
  while (!answers.empty()) {
    switch (SendAnswer(qp, answers.front())) {
      case Step::kMore:
        break;
      case Step::kDone:
        answers.pop_front();
        break;
      case Step::kWait:
        return false;
      case Step::kFailed:
        // The region went away while its READ was being answered.
        answers.front().type = PacketType::kNak;
        answers.front().nak = NakCode::kRemoteAccess;
        break;
    }
  }
  return true;
}

void RefuseAnswers(Qp& qp) {
  std::deque<Answer>& answers = qp.responder.answers;
  // What was done is not refused. Its acknowledgement may wait for the end of a batch (LateAcks).
  while (!answers.empty() && answers.front().type == PacketType::kAck &&
         SendAnswer(qp, answers.front()) == Step::kDone) {
    answers.pop_front();
  }
  if (answers.empty()) return;
  Answer refusal{};
  refusal.type = PacketType::kNak;
  refusal.nak = NakCode::kNoQueuePair;
  refusal.psn = answers.front().psn;
  refusal.epoch = answers.front().epoch;
  answers.assign(1, refusal);
  SendAnswers(qp);
}

void HandRefusalToLink(Qp& qp) {
  RefuseAnswers(qp);
  std::deque<Answer>& answers = qp.responder.answers;
  if (answers.empty() || qp.link->refusals().size() >= kMaxAnswers) return;
  qp.link->refusals().push_back(AnswerHeader(qp, answers.front(), 0));
  answers.clear();
}

void HandleRequest(Qp& qp, Link& link, const PacketHeader& request, const uint8_t* payload) {
  if (AnyPortDown() && IsPortDown(ArrivalPort(qp, request))) [[unlikely]]
    return Miss(qp, link, request);
  if (!qp.IsReliable()) return HandleUnreliable(qp, link, request, payload);
  Responder& responder = qp.responder;
  if (qp.state == IBV_QPS_RESET || qp.state == IBV_QPS_INIT) {
    responder.refused = true;
    return EmitNak(link, qp, request, NakCode::kNotConnected);
  }
  if (!qp.CanReceive() || qp.link.get() != &link || request.from_qpn != qp.attr.dest_qp_num) {
    return EmitNak(link, qp, request, NakCode::kNoQueuePair);
  }
  FollowPeer(qp, request);
  const bool repeat = (request.flags & kPacketFirst) != 0;
  if (request.psn != responder.expected_psn || (responder.refused && !repeat)) {
    if (!responder.refused) Refuse(qp, request, NakCode::kSequence);
    return;
  }
  responder.refused = false;
  if (!IsNextSegment(responder, request)) {
    if (request.type == PacketType::kSend || request.type == PacketType::kWrite) {
      return FailWithEvent(qp, link, request, NakCode::kInvalidRequest);
    }
  }
  if (qp.state == IBV_QPS_RTR && !qp.established) {
    qp.established = true;
    RaiseQpEvent(qp, IBV_EVENT_COMM_EST);
  }
  switch (request.type) {
    case PacketType::kSend:
      return HandleSend(qp, link, request, payload);
    case PacketType::kWrite:
      return HandleWrite(qp, link, request, payload);
    case PacketType::kRead:
      return HandleRead(qp, link, request);
    default:
      return HandleAtomic(qp, link, request);
  }
}

}  // namespace softverbs
