#ifndef GANNET_COMMON_RDMA_HANDLE_H_
#define GANNET_COMMON_RDMA_HANDLE_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

#include "common/base/check.h"

namespace gannet {

// Owns any object of libibverbs or librdmacm. Destroying an object that is still in use (a CQ with
// queue pairs, a PD with memory regions) is a bug and ends the process. So declare members in the
// order of dependency: channel, pd, cq, srq, memory, mr, queue pair.
//
// The destroy calls of a CQ and of a cm id wait until all their events are acknowledged.
// common/rdma acknowledges each event as it takes it.
struct Deleter {
  void operator()(ibv_pd* pd) const { Check(ibv_dealloc_pd(pd), "ibv_dealloc_pd failed"); }
  void operator()(ibv_mr* mr) const { Check(ibv_dereg_mr(mr), "ibv_dereg_mr failed"); }
  void operator()(ibv_comp_channel* channel) const {
    Check(ibv_destroy_comp_channel(channel), "ibv_destroy_comp_channel failed");
  }
  void operator()(ibv_cq* cq) const { Check(ibv_destroy_cq(cq), "ibv_destroy_cq failed"); }
  void operator()(ibv_srq* srq) const { Check(ibv_destroy_srq(srq), "ibv_destroy_srq failed"); }
  void operator()(ibv_qp* qp) const { Check(ibv_destroy_qp(qp), "ibv_destroy_qp failed"); }
  void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
  // Also destroys a queue pair made on the id. Only librdmacm may destroy that, because the id
  // keeps a pointer to it.
  void operator()(rdma_cm_id* id) const;

 private:
  static void Check(int result, const char* what) { GANNET_CHECK(result == 0, what); }
};

template <class T>
using Handle = std::unique_ptr<T, Deleter>;
static_assert(sizeof(Handle<ibv_qp>) == sizeof(void*));

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_HANDLE_H_
