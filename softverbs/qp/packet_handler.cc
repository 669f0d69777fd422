#include "softverbs/nic/packet_handler.h"

#include "softverbs/base/mutex.h"
#include "softverbs/base/port_state.h"
#include "softverbs/qp/datagram_receiver.h"
#include "softverbs/qp/path.h"
#include "softverbs/qp/qp.h"
#include "softverbs/qp/requester.h"
#include "softverbs/qp/responder.h"
#include "softverbs/qp/split_atomic.h"
#include "softverbs/qp/tear_answer.h"
#include "softverbs/qp/timers.h"

namespace softverbs {

void HandlePacket(Qp& qp, Link& link, const PacketHeader& header, const uint8_t* payload) {
  const LockGuard guard(qp.lock);
  switch (header.type) {
    case PacketType::kSend:
    case PacketType::kWrite:
    case PacketType::kRead:
    case PacketType::kCompareSwap:
    case PacketType::kFetchAdd:
      return HandleRequest(qp, link, header, payload);
    case PacketType::kReadResponse:
    case PacketType::kAtomicResponse:
    case PacketType::kAck:
    case PacketType::kNak:
      // Accepts answers only from the peer that this queue pair is connected to. Others are stale
      // or forged.
      if (qp.IsReliable() && qp.link.get() == &link && header.from_qpn == qp.attr.dest_qp_num) {
        FollowPeer(qp, header);
        HandleAnswer(qp, header, payload);
      }
      return;
    case PacketType::kDatagram:
      if (qp.IsDatagram() && !IsPortDown(PathPort(qp))) {
        HandleDatagram(qp, header, payload);
      }
      return;
    case PacketType::kSkip:  // from a hostile peer: RingConsumer passes over real ones
    case PacketType::kTick:  // the same: the engine takes those of remote links
      return;
  }
}

bool MustWait(Qp& qp) {
  const LockGuard guard(qp.lock);
  return IsTearing(qp) || IsSplitting(qp);
}

uint32_t OrdinalOf(const Qp& qp) SV_REQUIRES(qp.lock) { return qp.faults.ordinal; }

// It never changes, so it needs no lock.
uint32_t NodeOf(const Qp& qp) SV_ATTRIBUTE(no_thread_safety_analysis) { return qp.faults.node; }

int PortOf(Qp& qp) {
  const LockGuard guard(qp.lock);
  return PathPort(qp);
}

void HandlePortDown(Qp& qp) {
  const LockGuard guard(qp.lock);
  if (!IsPortDown(PathPort(qp))) return;
  if (MigrateFromDeadPath(qp, /*last=*/false)) return Transmit(qp);
  LimitWaitForPort(qp);
}

uint64_t NextArrival(Qp& qp) {
  const LockGuard guard(qp.lock);
  return qp.faults.arrivals++;
}

void HandleLinkSpace(Qp& qp) {
  const LockGuard guard(qp.lock);
  qp.waits_for_link = false;
  if (SendAnswers(qp)) Transmit(qp);
}

void HandleLateAck(Qp& qp) {
  const LockGuard guard(qp.lock);
  SendAnswers(qp);
}

namespace {

// Requests that waited for space in the link are lost, like those that were in it.
void HandleLossyLinkDown(Qp& qp, const Link& link) SV_REQUIRES(qp.lock) {
  if (!qp.IsDatagram() && qp.link.get() != &link) return;
  qp.waits_for_link = false;
  Transmit(qp);
}

}  // namespace

void HandleLinkDown(Qp& qp, const Link& link) {
  const LockGuard guard(qp.lock);
  if (!qp.IsReliable()) return HandleLossyLinkDown(qp, link);
  if (qp.link.get() != &link) return;
  qp.responder.answers.clear();
  // As on a real adapter, a connection without outstanding work does not notice.
  if (qp.requester.queue.Idle()) return;
  if (qp.state == IBV_QPS_RTS) HandlePeerGone(qp);
  if (qp.state == IBV_QPS_SQD) FailOldest(qp, IBV_WC_RETRY_EXC_ERR);  // nothing is resent there
}

}  // namespace softverbs
