#ifndef SOFTVERBS_ABI_QP_VERBS_H_
#define SOFTVERBS_ABI_QP_VERBS_H_

#include <infiniband/verbs.h>

namespace softverbs {

// verbs_context::create_qp_ex.
ibv_qp* CreateQpEx(ibv_context* context, ibv_qp_init_attr_ex* attr);

}  // namespace softverbs

#endif  // SOFTVERBS_ABI_QP_VERBS_H_
