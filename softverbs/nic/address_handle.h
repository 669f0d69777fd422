#ifndef SOFTVERBS_NIC_ADDRESS_HANDLE_H_
#define SOFTVERBS_NIC_ADDRESS_HANDLE_H_

#include <infiniband/verbs.h>

namespace softverbs {

// An address handle: the destination of datagrams. Immutable.
struct Ah {
  ibv_ah ibv{};  // first
  ibv_global_route route{};
  ibv_gid source{};  // what route.sgid_index meant when it was created

  static const Ah* From(const ibv_ah* ah) { return reinterpret_cast<const Ah*>(ah); }
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_ADDRESS_HANDLE_H_
