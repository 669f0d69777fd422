#ifndef SOFTVERBS_ABI_CQ_VERBS_H_
#define SOFTVERBS_ABI_CQ_VERBS_H_

#include <infiniband/verbs.h>

namespace softverbs {

// verbs_context::create_cq_ex.
ibv_cq_ex* CreateCqEx(ibv_context* context, ibv_cq_init_attr_ex* attr);

}  // namespace softverbs

#endif  // SOFTVERBS_ABI_CQ_VERBS_H_
