#ifndef SOFTVERBS_ABI_PD_VERBS_H_
#define SOFTVERBS_ABI_PD_VERBS_H_

#include <infiniband/verbs.h>

namespace softverbs {

// Members of verbs_context.
ibv_td* AllocateThreadDomain(ibv_context* context, ibv_td_init_attr* attr);
int FreeThreadDomain(ibv_td* td);
ibv_pd* AllocateParentDomain(ibv_context* context, ibv_parent_domain_init_attr* attr);

}  // namespace softverbs

#endif  // SOFTVERBS_ABI_PD_VERBS_H_
