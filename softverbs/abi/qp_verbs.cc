#include "softverbs/abi/qp_verbs.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "softverbs/abi/check_objects.h"
#include "softverbs/base/errno.h"
#include "softverbs/base/export.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/verbs_limits.h"
#include "softverbs/cq/held_completions.h"
#include "softverbs/qp/qp.h"
#include "softverbs/qp/qp_state.h"
#include "softverbs/qp/requester.h"
#include "softverbs/qp/responder.h"

namespace softverbs {
namespace {

// Returns the IBV_QP_EX_WITH_* bits of a type of queue pair, or 0 if there is no such type here.
uint64_t SendOperations(ibv_qp_type type) {
  constexpr uint64_t kSend = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
  constexpr uint64_t kWrite = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  constexpr uint64_t kFetch = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                              IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  constexpr uint64_t kWindow = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
  switch (type) {
    case IBV_QPT_RC:
      return kSend | kWrite | kFetch | kWindow | IBV_QP_EX_WITH_SEND_WITH_INV;
    case IBV_QPT_UC:
      return kSend | kWrite | kWindow;
    case IBV_QPT_UD:
      return kSend;
    default:
      return 0;
  }
}

int CheckAttributes(const ibv_context* context, const ibv_qp_init_attr_ex& attr) {
  constexpr uint32_t kKnown =
      IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  if ((attr.comp_mask & ~kKnown) != 0) return EOPNOTSUPP;
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr.create_flags) return EOPNOTSUPP;
  if ((attr.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
      (attr.send_ops_flags & ~SendOperations(attr.qp_type)) != 0) {
    return EOPNOTSUPP;
  }
  if (SendOperations(attr.qp_type) == 0) return EOPNOTSUPP;
  if (!(attr.comp_mask & IBV_QP_INIT_ATTR_PD) || attr.pd == nullptr) return EINVAL;
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr) return EINVAL;
  if (const int error = CheckObjects(context, attr.pd, attr.send_cq, attr.recv_cq, attr.srq)) {
    return error;
  }
  const ibv_qp_cap& cap = attr.cap;
  if (cap.max_send_wr > kMaxWr || cap.max_send_sge > kMaxSge || cap.max_inline_data > kMaxInline) {
    return EINVAL;
  }
  // With an SRQ the receive queue's size is ignored.
  const bool own_receives = attr.srq == nullptr;
  if (own_receives && (cap.max_recv_wr > kMaxWr || cap.max_recv_sge > kMaxSge)) return EINVAL;
  return 0;
}

void AddUsers(Qp& qp, int count) {
  qp.send_cq->users.fetch_add(count, std::memory_order_acq_rel);
  qp.recv_cq->users.fetch_add(count, std::memory_order_acq_rel);
  if (qp.srq != nullptr) qp.srq->users.fetch_add(count, std::memory_order_acq_rel);
  Pd::From(qp.ex.qp_base.pd)->users.fetch_add(count, std::memory_order_acq_rel);
  qp.context->objects.fetch_add(count, std::memory_order_acq_rel);
}

void FillPublic(Qp& qp, ibv_context* context, const ibv_qp_init_attr_ex& attr) {
  ibv_qp& base = qp.ex.qp_base;
  base.context = context;
  base.qp_context = attr.qp_context;
  base.pd = attr.pd;
  base.send_cq = attr.send_cq;
  base.recv_cq = attr.recv_cq;
  base.srq = attr.srq;
  base.qp_type = attr.qp_type;
  base.state = IBV_QPS_RESET;
  pthread_mutex_init(&base.mutex, nullptr);
  pthread_cond_init(&base.cond, nullptr);
  InstallWorkRequestCalls(qp.ex);
}

Qp* CreateQp(ibv_context* context, const ibv_qp_init_attr_ex& attr) {
  auto qp = std::make_unique<Qp>();
  qp->lock.AssertHeld();  // nobody else knows it yet
  qp->context = Context::From(context);
  qp->nic = qp->context->nic;
  qp->pd_id = Pd::From(attr.pd)->id;
  qp->send_cq = Cq::From(attr.send_cq);
  qp->recv_cq = Cq::From(attr.recv_cq);
  qp->srq = attr.srq != nullptr ? Srq::From(attr.srq) : nullptr;
  qp->cap = attr.cap;
  if (qp->srq != nullptr) qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
  // Allows as much inline data as fits into the scatter/gather list of a request anyway. Some
  // programs send a few bytes inline without having asked for room, and adapters let them.
  qp->cap.max_inline_data = std::max<uint32_t>(
      qp->cap.max_inline_data, qp->cap.max_send_sge * static_cast<uint32_t>(sizeof(ibv_sge)));
  qp->signal_all = attr.sq_sig_all != 0;
  qp->requester.queue.Init(qp->cap.max_send_wr, qp->cap.max_send_sge, qp->cap.max_inline_data);
  if (attr.qp_type == IBV_QPT_UD) {
    qp->routes = std::make_unique<DatagramRoute[]>(qp->requester.queue.places());
  }
  qp->receives.Init(qp->cap.max_recv_wr, qp->cap.max_recv_sge);
  FillPublic(*qp, context, attr);
  qp->number = qp->nic->qps().Add(qp.get());
  if (qp->number == 0) {
    errno = ENOMEM;
    return nullptr;
  }
  // No lock is needed, because nobody can know the number yet.
  qp->shared = &qp->nic->tables()->qps[QpIndex(qp->number)];
  qp->ex.qp_base.qp_num = qp->ex.qp_base.handle = qp->number;
  qp->identity.Take(qp->ex.qp_base);
  AddUsers(*qp, 1);
  return qp.release();
}

// Waits until the application acknowledged the events it took. Events that it did not take are
// dropped.
void AwaitAcknowledged(Qp& qp) {
  ibv_qp* ibv = qp.ibv();
  uint32_t events = qp.events_pushed.load(std::memory_order_relaxed);
  events -= qp.context->async_events.Purge([&](const ibv_async_event& event) {
    const bool of_qp =
        (event.event_type >= IBV_EVENT_QP_FATAL && event.event_type <= IBV_EVENT_PATH_MIG_ERR) ||
        event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
    return of_qp && event.element.qp == ibv;
  });
  pthread_mutex_lock(&ibv->mutex);
  while (ibv->events_completed != events) pthread_cond_wait(&ibv->cond, &ibv->mutex);
  pthread_mutex_unlock(&ibv->mutex);
}

// Removes the queue pair from the NIC. Afterwards no part of the NIC knows it.
void Detach(Qp& qp) {
  const PacketEngine::Pause pause(qp.nic->engine());
  qp.nic->qps().Remove(qp.number);
  const LockGuard guard(qp.lock);
  RevokeTarget(qp);
  qp.nic->windows().ForgetQueuePair(qp.number);
  HandRefusalToLink(qp);
  qp.state = IBV_QPS_RESET;
  Purge(*qp.send_cq, qp.number);
  Purge(*qp.recv_cq, qp.number);
}

}  // namespace

ibv_qp* CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  if (const int error = CheckAttributes(context, *attr)) {
    errno = error;
    return nullptr;
  }
  Qp* qp = CreateQp(context, *attr);
  if (qp == nullptr) return nullptr;
  attr->cap = qp->cap;
  return qp->ibv();
}

}  // namespace softverbs

using softverbs::Qp;

SOFTVERBS_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  ibv_qp_init_attr_ex attr{};
  attr.qp_context = init->qp_context;
  attr.send_cq = init->send_cq;
  attr.recv_cq = init->recv_cq;
  attr.srq = init->srq;
  attr.cap = init->cap;
  attr.qp_type = init->qp_type;
  attr.sq_sig_all = init->sq_sig_all;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd;
  ibv_qp* qp = softverbs::CreateQpEx(pd->context, &attr);
  if (qp != nullptr) init->cap = attr.cap;
  return qp;
}

SOFTVERBS_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) { return &Qp::From(qp)->ex; }

SOFTVERBS_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  if (softverbs::Inherited(qp->context)) return 0;
  if (const int error = Qp::From(qp)->Check()) return softverbs::WithErrno(error);
  return softverbs::WithErrno(softverbs::ModifyQp(*Qp::From(qp), *attr, mask));
}

SOFTVERBS_EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  if (const int error = Qp::From(qp)->Check()) return softverbs::WithErrno(error);
  softverbs::QueryQp(*Qp::From(qp), attr, init);
  return 0;
}

SOFTVERBS_EXPORT int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) {
  return 1;  // copies go upwards
}

SOFTVERBS_EXPORT int ibv_destroy_qp(ibv_qp* ibv) {
  if (softverbs::Inherited(ibv->context)) return 0;
  Qp* qp = Qp::From(ibv);
  if (const int error = qp->Check()) return softverbs::WithErrno(error);
  if (qp->nic->multicast().IsAttached(qp->number)) return softverbs::WithErrno(EBUSY);
  softverbs::Detach(*qp);
  softverbs::AwaitAcknowledged(*qp);
  qp->nic->qps().Free(qp->number);
  softverbs::AddUsers(*qp, -1);
  pthread_mutex_destroy(&ibv->mutex);
  pthread_cond_destroy(&ibv->cond);
  delete qp;
  return 0;
}
