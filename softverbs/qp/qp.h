#ifndef SOFTVERBS_QP_QP_H_
#define SOFTVERBS_QP_QP_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "softverbs/base/spin_lock.h"
#include "softverbs/cq/cq.h"
#include "softverbs/fault/qp_faults.h"
#include "softverbs/nic/atomic_units.h"
#include "softverbs/nic/context.h"
#include "softverbs/nic/link.h"
#include "softverbs/nic/packet.h"
#include "softverbs/qp/datagram_route.h"
#include "softverbs/qp/receive_queue.h"
#include "softverbs/qp/send_queue.h"
#include "softverbs/qp/srq.h"
#include "softverbs/qp/torn_read.h"
#include "softverbs/qp/work_request_builder.h"

namespace softverbs {

// How far a requester has come, for the timer that notices silence. See timers.h.
struct Progress {
  uint32_t done = 0;
  uint32_t sent_bytes = 0;
  uint32_t received = 0;
  uint64_t acknowledged = 0;  // bytes of the link, by the peer's kernel
  bool operator==(const Progress&) const = default;
};

// The requester's half of a queue pair. See requester.h.
struct Requester {
  SendQueue queue;
  uint32_t next_psn = 0;
  uint32_t sent_bytes = 0;  // of queue.next, when its transmission began
  bool began = false;
  uint8_t epoch = 0;     // changes at every retransmission
  uint32_t fetches = 0;  // READs and atomics that wait for their answer
  uint32_t retries_left = 0;
  uint32_t rnr_retries_left = 0;
  bool backing_off = false;
  bool held_back = false;       // a fault delays the request at queue.next
  uint32_t hold_count = 0;      // tells a late timer from the current one
  bool peer_awaited = false;    // there was a wait for a peer that is gone, without an answer
  uint32_t back_off_count = 0;  // tells a late timer from the current one
  // On a link to another host:
  bool awaits_answers = false;  // a timer looks for progress
  uint32_t await_count = 0;     // tells a late timer from the current one
  Progress progress;            // when the timer looked last
  int64_t progress_at = 0;      // there was some after this time
};

// An answer that the responder owes. Answers are in the order of the requests.
struct Answer {
  PacketType type;
  NakCode nak;
  uint8_t epoch;
  uint32_t psn;
  uint32_t imm;
  uint32_t rkey;
  uint64_t remote_addr;
  uint32_t length;
  uint32_t sent;
  uint64_t value;
  // For a READ that a fault tears.
  bool tear;
  int64_t tear_ns;
  uint64_t tear_seed;
  std::shared_ptr<TornRead> torn;  // once it began
  // For an atomic of one of several devices.
  std::shared_ptr<AtomicUnits::Operation> atomic;
};

// The responder's half of a queue pair. See responder.h.
struct Responder {
  uint32_t expected_psn = 0;
  bool refused = false;      // a request was refused; what follows it is dropped until its repeat
  bool in_message = false;   // between the first and the last segment
  bool has_receive = false;  // `receive` belongs to the message
  uint32_t received = 0;
  ReceiveWqe receive;
  std::deque<Answer> answers;
};

// A queue pair: reliable connected (RC), unreliable connected (UC), or unreliable datagram (UD).
// The files of this folder are about RC, and say what differs with UC. UD has files of its own
// (datagram_*).
//
// `lock` guards everything below it. Order of locks: the engine's progress lock, then a queue
// pair's lock, then one of (link transmit, CQ, SRQ). A thread never holds the locks of two queue
// pairs.
struct Qp {
  ibv_qp_ex ex{};  // first

  // Immutable after creation.
  Identity identity;
  Context* context = nullptr;
  Nic* nic = nullptr;
  uint32_t number = 0;
  uint32_t pd_id = 0;
  SharedQp* shared = nullptr;
  Cq* send_cq = nullptr;
  Cq* recv_cq = nullptr;
  Srq* srq = nullptr;
  ibv_qp_cap cap{};
  bool signal_all = false;

  std::atomic<uint32_t> events_pushed{0};
  WorkRequestBuilder builder;

  SpinLock lock;
  ibv_qp_state state SV_GUARDED_BY(lock) = IBV_QPS_RESET;
  ibv_qp_attr attr SV_GUARDED_BY(lock){};
  std::shared_ptr<Link> link SV_GUARDED_BY(lock);
  bool waits_for_link SV_GUARDED_BY(lock) = false;  // noted in the link, for space
  bool established SV_GUARDED_BY(lock) = false;     // COMM_EST was raised
  bool notify_drained SV_GUARDED_BY(lock) = false;
  uint8_t path_flags SV_GUARDED_BY(lock) = 0;  // of each packet (path.h)
  Requester requester SV_GUARDED_BY(lock);
  Responder responder SV_GUARDED_BY(lock);
  ReceiveQueue receives SV_GUARDED_BY(lock);
  // UD: one for each place of the send queue.
  std::unique_ptr<DatagramRoute[]> routes SV_GUARDED_BY(lock);
  fault::QpFaults faults SV_GUARDED_BY(lock);

  static Qp* From(ibv_qp* qp) { return reinterpret_cast<Qp*>(qp); }
  static Qp* From(ibv_qp_ex* qp) { return reinterpret_cast<Qp*>(qp); }
  ibv_qp* ibv() { return &ex.qp_base; }
  int Check() const { return identity.Check(ex.qp_base); }

  ibv_qp_type type() const { return ex.qp_base.qp_type; }
  bool IsReliable() const { return type() == IBV_QPT_RC; }
  bool IsDatagram() const { return type() == IBV_QPT_UD; }

  // The protection domain that receives are checked against: that of the queue they come from.
  uint32_t ReceivePd() const { return srq != nullptr ? srq->pd->id : pd_id; }

  bool CanReceive() const SV_REQUIRES(lock) {
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
           state == IBV_QPS_SQE;
  }
  // In these states, requests posted to the send queue are flushed.
  bool FlushesSends() const SV_REQUIRES(lock) {
    return state == IBV_QPS_ERR || state == IBV_QPS_SQE;
  }
};

void RaiseQpEvent(Qp& qp, ibv_event_type type);

// Publishes what peers may do through this queue pair, for their accelerators. Publishes nothing
// unless the queue pair can receive. REQUIRES: lock held.
void PublishTarget(Qp& qp) SV_REQUIRES(qp.lock);

// Takes back the right to execute anything through this queue pair, and waits until nobody does so
// any more. REQUIRES: lock held.
void RevokeTarget(Qp& qp) SV_REQUIRES(qp.lock);

// Moves to the error state: revokes the peers' rights, flushes both queues with
// IBV_WC_WR_FLUSH_ERR, refuses requests whose answers it owed, and tells users of an SRQ that the
// last receive was reached. REQUIRES: lock held.
void EnterError(Qp& qp) SV_REQUIRES(qp.lock);

// Handles a failed send. A reliable connection cannot go on, so this is EnterError. Otherwise only
// the send queue stops and is flushed (IBV_QPS_SQE), and receives go on. REQUIRES: lock held.
void EnterSendError(Qp& qp) SV_REQUIRES(qp.lock);

// Flushes requests posted in the error states. REQUIRES: lock held.
void FlushQueues(Qp& qp) SV_REQUIRES(qp.lock);

// Takes a receive into responder.receive, unless it holds one. Returns false if there is none.
// REQUIRES: lock held.
bool TakeReceive(Qp& qp) SV_REQUIRES(qp.lock);

// Completes the receive that the current message took. REQUIRES: lock held.
void CompleteReceive(Qp& qp, const ReceiveWqe& receive, ibv_wc_status status) SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_QP_H_
