#ifndef SOFTVERBS_ABI_AH_VERBS_H_
#define SOFTVERBS_ABI_AH_VERBS_H_

#include <infiniband/verbs.h>

namespace softverbs {

// An address handle: where datagrams go. Immutable.
struct Ah {
  ibv_ah ibv{};  // first
  ibv_global_route route{};

  static const Ah* From(const ibv_ah* ah) { return reinterpret_cast<const Ah*>(ah); }
};

}  // namespace softverbs

#endif  // SOFTVERBS_ABI_AH_VERBS_H_
