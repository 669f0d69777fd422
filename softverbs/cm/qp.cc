// rdma_create_qp, rdma_create_srq and the like: verbs objects that belong to an id.

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cstring>
#include <utility>

#include "softverbs/base/export.h"
#include "softverbs/cm/advance_qp.h"
#include "softverbs/cm/cm_id.h"

namespace softverbs::cm {
namespace {

// Completion queues for applications that bring none, each with its own channel.

void DestroyQueue(ibv_cq** cq, ibv_comp_channel** channel) {
  if (*cq != nullptr) ibv_destroy_cq(std::exchange(*cq, nullptr));
  if (*channel != nullptr) ibv_destroy_comp_channel(std::exchange(*channel, nullptr));
}

void DestroyQueues(CmId* id) {
  DestroyQueue(&id->recv_cq, &id->recv_cq_channel);
  DestroyQueue(&id->send_cq, &id->send_cq_channel);
}

// Returns 0 or an errno.
int CreateQueue(CmId* id, uint32_t entries, ibv_cq** cq, ibv_comp_channel** channel) {
  if (entries == 0) return 0;
  *channel = ibv_create_comp_channel(id->verbs);
  if (*channel == nullptr) return errno;
  *cq = ibv_create_cq(id->verbs, static_cast<int>(entries), id, *channel, 0);
  return *cq == nullptr ? errno : 0;
}

// Returns 0 or an errno.
int CreateQueues(CmId* id, const ibv_qp_init_attr_ex& attr) {
  const bool has_send = attr.send_cq != nullptr || id->send_cq != nullptr;
  const bool has_recv = attr.recv_cq != nullptr || id->recv_cq != nullptr;
  int error =
      CreateQueue(id, has_recv ? 0 : attr.cap.max_recv_wr, &id->recv_cq, &id->recv_cq_channel);
  if (error == 0) {
    error =
        CreateQueue(id, has_send ? 0 : attr.cap.max_send_wr, &id->send_cq, &id->send_cq_channel);
  }
  if (error != 0) DestroyQueues(id);
  return error;
}

bool Conflict(const ibv_cq* own, const ibv_cq* given) {
  return own != nullptr && given != nullptr && own != given;
}

// ECE is vendor-specific. The device has none to offer, and says so with zeroes.
void NoteEce(CmId* id, ibv_qp* qp) {
  ibv_ece ece = {};
  if (ibv_query_ece(qp, &ece) != 0) return;
  const LockGuard lock(state_mutex);
  id->local_ece.vendor_id = ece.vendor_id;
  id->local_ece.options = ece.options;
}

// Returns 0 or an errno. Then what it filled in may name queues that are gone.
int FillAndCreateQp(CmId* id, ibv_qp_init_attr_ex* attr) {
  if (id->qp != nullptr || id->verbs == nullptr) return EINVAL;
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
    attr->pd = id->pd;
  } else if (attr->pd->context != id->verbs) {
    return EINVAL;
  }
  if (Conflict(id->recv_cq, attr->recv_cq) || Conflict(id->send_cq, attr->send_cq)) return EINVAL;
  if (const int error = CreateQueues(id, *attr)) return error;
  if (attr->send_cq == nullptr) attr->send_cq = id->send_cq;
  if (attr->recv_cq == nullptr) attr->recv_cq = id->recv_cq;
  if (attr->srq == nullptr) attr->srq = id->srq;
  ibv_qp* qp = ibv_create_qp_ex(id->verbs, attr);
  int error = qp == nullptr ? errno : Prepare(id, qp);
  if (error != 0) {
    if (qp != nullptr) ibv_destroy_qp(qp);
    DestroyQueues(id);
    return error;
  }
  NoteEce(id, qp);
  id->pd = qp->pd;
  id->qp = qp;
  return 0;
}

// Returns 0 or an errno. If it fails, the attributes are what they were, so that the caller can try
// again with others. librdmacm leaves its destroyed completion queues in them.
int CreateQp(CmId* id, ibv_qp_init_attr_ex* attr) {
  // The extended attributes begin with the plain ones. Members behind `pd` may be missing in an old
  // program's structure, and are not touched.
  ibv_qp_init_attr plain;
  std::memcpy(&plain, attr, sizeof(plain));
  const uint32_t comp_mask = attr->comp_mask;
  ibv_pd* const pd = attr->pd;
  const int error = FillAndCreateQp(id, attr);
  if (error == 0) return 0;
  std::memcpy(attr, &plain, sizeof(plain));
  attr->comp_mask = comp_mask;
  attr->pd = pd;
  return error;
}

// Returns 0 or an errno.
int CreateSrq(CmId* id, ibv_srq_init_attr_ex* attr) {
  if (id->verbs == nullptr || (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0) return EINVAL;
  if (attr->srq_type == IBV_SRQT_XRC) return EOPNOTSUPP;
  if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attr->pd == nullptr) {
    attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    attr->pd = id->pd;
  }
  ibv_srq* srq = ibv_create_srq_ex(id->verbs, attr);
  if (srq == nullptr) return errno;
  if (id->pd == nullptr) id->pd = attr->pd;
  id->srq = srq;
  return 0;
}

}  // namespace
}  // namespace softverbs::cm

using softverbs::cm::CmId;
using softverbs::cm::Result;

SOFTVERBS_EXPORT int rdma_create_qp_ex(rdma_cm_id* handle, ibv_qp_init_attr_ex* qp_init_attr) {
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  return Result(softverbs::cm::CreateQp(id, qp_init_attr));
}

SOFTVERBS_EXPORT int rdma_create_qp(rdma_cm_id* handle, ibv_pd* pd,
                                    ibv_qp_init_attr* qp_init_attr) {
  // The extended attributes begin with the plain ones.
  ibv_qp_init_attr_ex attr = {};
  std::memcpy(&attr, qp_init_attr, sizeof(*qp_init_attr));
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd != nullptr ? pd : handle->pd;
  const int result = rdma_create_qp_ex(handle, &attr);
  std::memcpy(qp_init_attr, &attr, sizeof(*qp_init_attr));
  return result;
}

SOFTVERBS_EXPORT void rdma_destroy_qp(rdma_cm_id* handle) {
  CmId* id = CmId::From(handle);
  if (id == nullptr || id->qp == nullptr) return;
  ibv_destroy_qp(std::exchange(id->qp, nullptr));
  softverbs::cm::DestroyQueues(id);
}

SOFTVERBS_EXPORT int rdma_create_srq_ex(rdma_cm_id* handle, ibv_srq_init_attr_ex* attr) {
  CmId* id = CmId::From(handle);
  if (id == nullptr) return -1;
  return Result(softverbs::cm::CreateSrq(id, attr));
}

SOFTVERBS_EXPORT int rdma_create_srq(rdma_cm_id* handle, ibv_pd* pd, ibv_srq_init_attr* attr) {
  ibv_srq_init_attr_ex extended = {};
  std::memcpy(&extended, attr, sizeof(*attr));
  extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  extended.srq_type = IBV_SRQT_BASIC;
  extended.pd = pd;
  const int result = rdma_create_srq_ex(handle, &extended);
  std::memcpy(attr, &extended, sizeof(*attr));
  return result;
}

SOFTVERBS_EXPORT void rdma_destroy_srq(rdma_cm_id* handle) {
  CmId* id = CmId::From(handle);
  if (id == nullptr || id->srq == nullptr) return;
  ibv_destroy_srq(std::exchange(id->srq, nullptr));
  softverbs::cm::DestroyQueues(id);
}
