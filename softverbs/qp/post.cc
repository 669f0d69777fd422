#include "softverbs/qp/post.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "softverbs/base/errno.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/shared_copy.h"
#include "softverbs/base/stats.h"
#include "softverbs/fault/strict.h"
#include "softverbs/qp/accelerator.h"
#include "softverbs/qp/datagram_sender.h"
#include "softverbs/qp/qp.h"
#include "softverbs/qp/requester.h"
#include "softverbs/qp/scatter_gather.h"

namespace softverbs {
namespace {

constexpr uint32_t kAtomicBytes = sizeof(uint64_t);

bool IsAtomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

// Returns an errno value for what a real provider refuses in the call itself.
int CheckInline(const Qp& qp, const ibv_send_wr& wr, uint64_t length) {
  if ((wr.send_flags & IBV_SEND_INLINE) == 0) return 0;
  const bool carries_data = wr.opcode <= IBV_WR_SEND_WITH_IMM || wr.opcode == IBV_WR_SEND_WITH_INV;
  if (carries_data && length <= qp.cap.max_inline_data) return 0;
  fault::Misuse("queue pair %u: %llu bytes inline, of at most %u, with opcode %d", qp.number,
                static_cast<unsigned long long>(length), qp.cap.max_inline_data, wr.opcode);
  return EINVAL;
}

ibv_wc_status CheckLocal(const Qp& qp, const ibv_send_wr& wr, SgeList list, uint64_t length) {
  if (length > kMaxMessage) return IBV_WC_LOC_LEN_ERR;
  if (IsAtomic(wr.opcode) && length != kAtomicBytes) return IBV_WC_LOC_LEN_ERR;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) return IBV_WC_SUCCESS;
  const bool fetch = wr.opcode == IBV_WR_RDMA_READ || IsAtomic(wr.opcode);
  if (Allowed(qp.nic->memory(), qp.pd_id, list, fetch ? IBV_ACCESS_LOCAL_WRITE : 0)) {
    return IBV_WC_SUCCESS;
  }
  fault::Misuse("queue pair %u: a list outside of its regions or their rights", qp.number);
  return IBV_WC_LOC_PROT_ERR;
}

// Changes the window's key at once, as ibv_bind_mw(3) says.
void FillBind(const ibv_send_wr& wr, SendWqe* wqe) {
  constexpr uint32_t kByte = (1u << kKeyByteBits) - 1;
  const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  wqe->rkey = (wr.bind_mw.mw->rkey & ~kByte) | (wr.bind_mw.rkey & kByte);
  wr.bind_mw.mw->rkey = wqe->rkey;
  wqe->remote_addr = info.addr;
  wqe->compare_add = info.length;
  wqe->swap = uint64_t{info.mr == nullptr ? 0 : info.mr->lkey} << 32 | info.mw_access_flags;
}

void FillRemote(const ibv_send_wr& wr, SendWqe* wqe) {
  if (wr.opcode == IBV_WR_BIND_MW) return FillBind(wr, wqe);
  if (wr.opcode == IBV_WR_LOCAL_INV) {
    wqe->rkey = wr.invalidate_rkey;
  } else if (IsAtomic(wr.opcode)) {
    wqe->remote_addr = wr.wr.atomic.remote_addr;
    wqe->rkey = wr.wr.atomic.rkey;
    wqe->compare_add = wr.wr.atomic.compare_add;
    wqe->swap = wr.wr.atomic.swap;
  } else {
    wqe->remote_addr = wr.wr.rdma.remote_addr;
    wqe->rkey = wr.wr.rdma.rkey;
    wqe->compare_add = 0;
    wqe->swap = 0;
  }
}

void FillLocal(const SgeList& list, SendWqe* wqe) {
  wqe->sge_count = list.count;
  if (!wqe->is_inline()) {
    std::copy_n(list.sges, list.count, wqe->sges());
    return;
  }
  uint8_t* to = wqe->inline_data();
  for (uint32_t i = 0; i < list.count; ++i) {
    const ibv_sge& sge = list.sges[i];
    memcpy(to, reinterpret_cast<const void*>(sge.addr), sge.length);
    to += sge.length;
  }
}

bool Supports(const Qp& qp, ibv_wr_opcode opcode) {
  switch (qp.type()) {
    case IBV_QPT_UD:
      return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
    case IBV_QPT_UC:
      return opcode <= IBV_WR_SEND_WITH_IMM ||  // the WRITEs and SENDs
             opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
    default:
      return opcode <= IBV_WR_SEND_WITH_INV;
  }
}

// What an application finds if it looks at a READ's sink before its completion. Written by words,
// as an adapter writes, because others may be reading the memory.
void Poison(const Qp& qp, SendWqe& wqe) {
  constexpr uint32_t kBlock = 64;
  static const std::vector<uint8_t> poison(kBlock, fault::kPoison);
  for (uint32_t i = 0; i < wqe.sge_count; ++i) {
    const ibv_sge& sge = wqe.sges()[i];
    uint8_t* sink =
        qp.nic->memory().Resolve(sge.lkey, sge.addr, sge.length, qp.pd_id, IBV_ACCESS_LOCAL_WRITE);
    for (uint32_t at = 0; sink != nullptr && at < sge.length; at += kBlock) {
      CopyToShared(sink + at, poison.data(), std::min(kBlock, sge.length - at));
    }
  }
}

// Applies the plan to the request.
void Afflict(Qp& qp, const fault::Plan& plan, SendWqe& wqe) SV_REQUIRES(qp.lock) {
  fault::QpFaults& faults = qp.faults;
  wqe.faults = fault::DecideRequest(plan, faults.ordinal, faults.requests++, faults.of_connection++,
                                    wqe.opcode);
  const bool runs = wqe.error == IBV_WC_SUCCESS;
  if (runs && plan.strict && wqe.is_fetch()) Poison(qp, wqe);
  if (runs) wqe.error = wqe.faults.error;
}

}  // namespace

int Enqueue(Qp& qp, const ibv_send_wr& wr) {
  SendQueue& queue = qp.requester.queue;
  if (queue.Full()) return ENOMEM;
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > qp.cap.max_send_sge) return EINVAL;
  if (!Supports(qp, wr.opcode)) return EINVAL;
  if (IsAtomic(wr.opcode) && !fault::HasAtomics()) return EINVAL;
  const bool local = wr.opcode == IBV_WR_BIND_MW || wr.opcode == IBV_WR_LOCAL_INV;
  const SgeList list{wr.sg_list, local ? 0 : static_cast<uint32_t>(wr.num_sge)};
  const uint64_t length = TotalLength(list);
  if (const int error = CheckInline(qp, wr, length)) return error;
  SendWqe& wqe = queue.At(queue.posted);
  wqe.wr_id = wr.wr_id;
  wqe.opcode = wr.opcode;
  wqe.send_flags = wr.send_flags;
  wqe.imm = wr.imm_data;  // or invalidate_rkey, which shares its place
  wqe.length = static_cast<uint32_t>(std::min<uint64_t>(length, UINT32_MAX));
  wqe.error = CheckLocal(qp, wr, list, length);
  FillRemote(wr, &wqe);
  FillLocal(list, &wqe);
  wqe.faults = {};
  const fault::Plan* plan = fault::Active();
  if (plan != nullptr && !local) [[unlikely]]
    Afflict(qp, *plan, wqe);
  ++queue.posted;
  if (stats_enabled) CountPost(qp.context->device, wr.opcode, length);
  return 0;
}

namespace {

// A READ or atomic was executed while the queue was empty.
[[gnu::always_inline]] inline void CompleteNow(Qp& qp, const ibv_send_wr& wr, ibv_wc_opcode opcode,
                                               uint32_t bytes) SV_REQUIRES(qp.lock) {
  SendQueue& queue = qp.requester.queue;
  queue.next = queue.done = ++queue.posted;
  if (stats_enabled) CountPost(qp.context->device, wr.opcode, bytes);
  if (!qp.signal_all && (wr.send_flags & IBV_SEND_SIGNALED) == 0) return;
  PushCompletion(*qp.send_cq, [&](Cqe& cqe) {
    qp.lock.AssertHeld();
    cqe.wr_id = wr.wr_id;
    cqe.qp_num = qp.number;
    cqe.opcode = opcode;
    cqe.byte_len = bytes;
    cqe.sq_freed = &queue.freed;
    cqe.sq_free_to = queue.done;
  });
}

bool ExecuteAtomic(Qp& qp, const ibv_send_wr& wr, SgeList local) SV_REQUIRES(qp.lock) {
  const bool swap = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  if (TotalLength(local) != kAtomicBytes) return false;
  const RemoteOperation operation{wr.opcode,
                                  wr.wr.atomic.remote_addr,
                                  wr.wr.atomic.rkey,
                                  kAtomicBytes,
                                  wr.wr.atomic.compare_add,
                                  wr.wr.atomic.swap,
                                  nullptr,
                                  local};
  if (!Accelerate(qp, operation)) return false;
  CompleteNow(qp, wr, swap ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD, kAtomicBytes);
  return true;
}

bool ExecuteRead(Qp& qp, const ibv_send_wr& wr, SgeList local) SV_REQUIRES(qp.lock) {
  const uint64_t length = local.count == 1 ? local.sges[0].length : TotalLength(local);
  if (length > kMaxMessage) return false;
  const auto bytes = static_cast<uint32_t>(length);
  if (!AccelerateRead(qp, wr.wr.rdma.remote_addr, wr.wr.rdma.rkey, bytes, local)) return false;
  CompleteNow(qp, wr, IBV_WC_RDMA_READ, bytes);
  return true;
}

// Fast path: nothing is under way, and the accelerator can execute the request now. If it returns
// false, the queue handles the request, and also finds out what was wrong.
bool ExecuteNow(Qp& qp, const ibv_send_wr& wr) SV_REQUIRES(qp.lock) {
  const SendQueue& queue = qp.requester.queue;
  if (qp.state != IBV_QPS_RTS || !queue.Idle() || queue.Full() || !qp.responder.answers.empty() ||
      (wr.send_flags & IBV_SEND_INLINE) != 0 ||
      static_cast<uint32_t>(wr.num_sge) > qp.cap.max_send_sge || qp.attr.max_rd_atomic == 0) {
    return false;
  }
  const SgeList local{wr.sg_list, static_cast<uint32_t>(wr.num_sge)};
  if (wr.opcode == IBV_WR_RDMA_READ) return ExecuteRead(qp, wr, local);
  return IsAtomic(wr.opcode) && ExecuteAtomic(qp, wr, local);
}

int CheckState(const Qp& qp) SV_REQUIRES(qp.lock) {
  if (CanPost(qp)) return 0;
  fault::Misuse("queue pair %u: post_send in state %d", qp.number, qp.state);
  return EINVAL;
}

}  // namespace

bool CanPost(const Qp& qp) {
  return qp.state == IBV_QPS_RTS || qp.state == IBV_QPS_SQD || qp.FlushesSends();
}

void StartPosted(Qp& qp) {
  if (qp.FlushesSends()) {
    FlushQueues(qp);
  } else {
    Transmit(qp);
  }
}

namespace {

// Starts what was posted. Returns the link whose peer is to be woken, or null. The caller does that
// when it has released the lock.
std::shared_ptr<Link> StartQuietly(Qp& qp, bool others_under_way) SV_REQUIRES(qp.lock) {
  ring_for = RingFor::kNone;
  StartPosted(qp);
  ring_for = RingFor::kAll;
  if (qp.link == nullptr || !qp.link->OwesRing()) return nullptr;
  if (others_under_way && qp.nic->engine().LeaveToPoll(*qp.link)) return nullptr;
  return qp.link;
}

int Post(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr, std::shared_ptr<Link>* to_ring) {
  const LockGuard guard(qp.lock);
  while (wr != nullptr && ExecuteNow(qp, *wr)) wr = wr->next;
  if (wr == nullptr) return 0;
  const bool others_under_way = !qp.requester.queue.Idle();
  int error = CheckState(qp);
  while (wr != nullptr && error == 0) {
    error = Enqueue(qp, *wr);
    if (error == 0) wr = wr->next;
  }
  if (error != 0) *bad_wr = wr;
  if (CanPost(qp)) *to_ring = StartQuietly(qp, others_under_way);
  return error;
}

int PostAllOrNone(Qp& qp, ibv_send_wr* wr, std::shared_ptr<Link>* to_ring) {
  const LockGuard guard(qp.lock);
  if (const int error = CheckState(qp)) return error;
  SendQueue& queue = qp.requester.queue;
  const uint32_t before = queue.posted;
  for (; wr != nullptr; wr = wr->next) {
    if (const int error = Enqueue(qp, *wr)) {
      queue.posted = before;
      return error;
    }
  }
  *to_ring = StartQuietly(qp, before != queue.done);
  return 0;
}

}  // namespace

int PostSend(ibv_qp* ibv, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  Qp& qp = *Qp::From(ibv);
  if (qp.IsDatagram()) [[unlikely]]
    return PostDatagrams(qp, wr, bad_wr);
  std::shared_ptr<Link> to_ring;
  const int error = Post(qp, wr, bad_wr, &to_ring);
  if (to_ring != nullptr) to_ring->RingDoorbell();
  return error == 0 ? 0 : WithErrno(error);
}

int PostSendAllOrNone(ibv_qp* ibv, ibv_send_wr* wr) {
  Qp& qp = *Qp::From(ibv);
  if (qp.IsDatagram()) return PostDatagrams(qp, wr, nullptr);
  std::shared_ptr<Link> to_ring;
  const int error = PostAllOrNone(qp, wr, &to_ring);
  if (to_ring != nullptr) to_ring->RingDoorbell();
  return error == 0 ? 0 : WithErrno(error);
}

int PostReceive(ibv_qp* ibv, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  Qp& qp = *Qp::From(ibv);
  const LockGuard guard(qp.lock);
  int error = qp.state == IBV_QPS_RESET || qp.srq != nullptr ? EINVAL : 0;
  while (wr != nullptr && error == 0) {
    error = qp.receives.Post(*wr);
    if (error != 0) break;
    Count(stats.receives);
    wr = wr->next;
  }
  if (error != 0) *bad_wr = wr;
  if (qp.state == IBV_QPS_ERR) FlushQueues(qp);
  return WithErrno(error);
}

}  // namespace softverbs
