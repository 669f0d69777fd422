#ifndef SOFTVERBS_ABI_SRQ_VERBS_H_
#define SOFTVERBS_ABI_SRQ_VERBS_H_

#include <infiniband/verbs.h>

namespace softverbs {

// verbs_context::create_srq_ex and get_srq_num.
ibv_srq* CreateSrqEx(ibv_context* context, ibv_srq_init_attr_ex* attr);
int GetSrqNumber(ibv_srq* srq, uint32_t* number);

}  // namespace softverbs

#endif  // SOFTVERBS_ABI_SRQ_VERBS_H_
