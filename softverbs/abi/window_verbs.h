#ifndef SOFTVERBS_ABI_WINDOW_VERBS_H_
#define SOFTVERBS_ABI_WINDOW_VERBS_H_

#include <infiniband/verbs.h>

namespace softverbs {

// Members of ibv_context_ops: memory windows.
ibv_mw* AllocateWindow(ibv_pd* pd, ibv_mw_type type);
int BindWindow(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int FreeWindow(ibv_mw* mw);

}  // namespace softverbs

#endif  // SOFTVERBS_ABI_WINDOW_VERBS_H_
