#include "softverbs/abi/window_verbs.h"

#include <cerrno>

#include "softverbs/base/errno.h"
#include "softverbs/base/log.h"
#include "softverbs/nic/context.h"
#include "softverbs/qp/post.h"

namespace softverbs {

ibv_mw* AllocateWindow(ibv_pd* pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return NullWithErrno<ibv_mw>(EINVAL);
  if (const int error = Pd::From(pd)->Check()) return NullWithErrno<ibv_mw>(error);
  Context& context = *Context::From(pd->context);
  const uint32_t key = context.nic->windows().Add(type, Pd::From(pd)->id);
  if (key == 0) {
    Report("no more than %u regions and windows", kMaxMrs);
    return NullWithErrno<ibv_mw>(ENOMEM);
  }
  Pd::From(pd)->users.fetch_add(1, std::memory_order_acq_rel);
  return new ibv_mw{
      .context = pd->context, .pd = pd, .rkey = key, .handle = WindowOf(key), .type = type};
}

int BindWindow(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  ibv_send_wr wr{};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = bind->bind_info;
  ibv_send_wr* bad = nullptr;
  return PostSend(qp, &wr, &bad);
}

int FreeWindow(ibv_mw* mw) {
  if (Inherited(mw->context)) return 0;
  // A bind leaves this part of the key, so that the handle always says it.
  if (mw->handle != WindowOf(mw->rkey)) return WithErrno(ENOENT);
  Context::From(mw->context)->nic->windows().Remove(mw->rkey);
  Pd::From(mw->pd)->users.fetch_sub(1, std::memory_order_acq_rel);
  delete mw;
  return 0;
}

}  // namespace softverbs
