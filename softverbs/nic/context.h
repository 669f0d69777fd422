#ifndef SOFTVERBS_NIC_CONTEXT_H_
#define SOFTVERBS_NIC_CONTEXT_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "softverbs/base/fork.h"
#include "softverbs/nic/event_queue.h"
#include "softverbs/nic/identity.h"
#include "softverbs/nic/nic.h"

namespace softverbs {

// An opened device. ibv_open_device returns a pointer to verbs.context. That public struct is the
// *last* member of verbs_context, so the private members come after it.
struct Context {
  verbs_context verbs{};
  Nic* nic = nullptr;
  int device = 0;
  uint32_t generation = ForkGeneration();
  std::atomic<int> objects{0};  // created in this context and not destroyed yet
  EventQueue<ibv_async_event> async_events;

  static Context* From(ibv_context* context) {
    return reinterpret_cast<Context*>(reinterpret_cast<char*>(context) -
                                      offsetof(verbs_context, context));
  }
};

// Returns the number of the device that a context is of.
inline int DeviceIndex(ibv_context* context) { return Context::From(context)->device; }

// Returns true in a forked child for objects that the parent made. The parent's locks and threads
// do not exist in the child, so the object must not be used: control calls succeed without doing
// anything.
inline bool Inherited(ibv_context* context) {
  return Context::From(context)->generation != ForkGeneration();
}

// A thread domain. It has no effect, but programs may create one.
struct ThreadDomain {
  ibv_td ibv{};               // first: applications hold pointers to it
  std::atomic<int> users{0};  // parent domains

  static ThreadDomain* From(ibv_td* td) { return reinterpret_cast<ThreadDomain*>(td); }
};

// A protection domain, or a parent domain, which is another name for one.
struct Pd {
  ibv_pd ibv{};  // first: applications hold pointers to it
  Identity identity;
  uint32_t id = 0;  // a parent domain has the id of its protection domain
  // Queue pairs, shared receive queues, regions, windows, address handles and parent domains that
  // use it.
  std::atomic<int> users{0};
  // Set in a parent domain only. The thread domain may be null.
  Pd* base = nullptr;
  ThreadDomain* thread = nullptr;

  static Pd* From(ibv_pd* pd) { return reinterpret_cast<Pd*>(pd); }
  int Check() const { return identity.Check(ibv); }
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_CONTEXT_H_
