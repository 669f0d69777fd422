#ifndef SOFTVERBS_ABI_CHECK_OBJECTS_H_
#define SOFTVERBS_ABI_CHECK_OBJECTS_H_

#include <infiniband/verbs.h>

#include <cerrno>

#include "softverbs/cq/cq.h"
#include "softverbs/nic/context.h"
#include "softverbs/qp/srq.h"

namespace softverbs {

// What a kernel says of an object that the program made in another context. It looks for the
// object's handle among those of the context's file, and does not find it. A completion channel is
// a descriptor of its own.
inline int NotOfContext(const void*) { return ENOENT; }
inline int NotOfContext(const ibv_comp_channel*) { return EBADF; }

inline int CheckIdentity(ibv_pd* pd) { return Pd::From(pd)->Check(); }
inline int CheckIdentity(ibv_cq* cq) { return Cq::From(cq)->Check(); }
inline int CheckIdentity(ibv_srq* srq) { return Srq::From(srq)->Check(); }
inline int CheckIdentity(ibv_td*) { return 0; }
inline int CheckIdentity(ibv_comp_channel*) { return 0; }

// The check of every verb that makes an object of others, or gives it another domain: they must all
// be of one context, and be what they were when they were made (Identity). Null stands for an
// object that the program does not give. Returns 0 or an errno value.
template <class... Objects>
int CheckObjects(const ibv_context* context, Objects*... objects) {
  int error = 0;
  const auto check = [&](auto* object) {
    if (object == nullptr) return true;
    error = object->context == context ? CheckIdentity(object) : NotOfContext(object);
    return error == 0;
  };
  (void)(check(objects) && ...);
  return error;
}

}  // namespace softverbs

#endif  // SOFTVERBS_ABI_CHECK_OBJECTS_H_
