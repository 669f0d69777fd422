#ifndef SOFTVERBS_NIC_ADDRESS_HANDLE_H_
#define SOFTVERBS_NIC_ADDRESS_HANDLE_H_

#include <infiniband/verbs.h>

#include "softverbs/nic/identity.h"

namespace softverbs {

// An address handle: the destination of datagrams. Immutable.
struct Ah {
  ibv_ah ibv{};  // first
  Identity identity;
  ibv_global_route route{};
  ibv_gid source{};  // what route.sgid_index meant when it was created

  static const Ah* From(const ibv_ah* ah) { return reinterpret_cast<const Ah*>(ah); }
  int Check() const { return identity.Check(ibv); }
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_ADDRESS_HANDLE_H_
