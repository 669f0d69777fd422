#ifndef SOFTVERBS_CQ_HELD_COMPLETIONS_H_
#define SOFTVERBS_CQ_HELD_COMPLETIONS_H_

#include <cstdint>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/cq/cq.h"
#include "softverbs/fault/qp_faults.h"

namespace softverbs {

// Completions that the fault plan delays. Those of one queue pair in one CQ stay in order, so a
// completion behind a delayed one waits too, and both arrive at once. Those of other queue pairs
// overtake them.
//
// Thread safe. Its mutex is taken after a queue pair's lock and before a CQ's.
class HeldCompletions {
 public:
  static HeldCompletions& Get();

  // Adds the completion to the CQ, now or later.
  void Deliver(Cq& cq, const Cqe& cqe, fault::QpFaults& faults);
  // Drops the completions of a queue pair that is destroyed or reset.
  void Purge(Cq& cq, uint32_t qp_num);
  // Delivers all of them now.
  void ReleaseAll();

 private:
  struct Held {
    Cq* cq;
    Cqe cqe;
    int64_t due_ns;
  };

  // Delivers the completions that are due at `now_ns`, in their order.
  void Release(int64_t now_ns);

  Mutex mutex_;
  // In the order of Deliver. No Cq pointer dangles: a CQ is destroyed only after
  // its queue pairs, which purge their completions here.
  std::vector<Held> held_ SV_GUARDED_BY(mutex_);
};

// PushCompletion for completions that a fault plan may delay. REQUIRES: the queue pair's lock held.
template <class Fill>
inline void Deliver(Cq& cq, fault::QpFaults& faults, Fill&& fill) {
  if (fault::Active() == nullptr) [[likely]] {
    PushCompletion(cq, fill);
  } else {
    Cqe cqe{};
    fill(cqe);
    HeldCompletions::Get().Deliver(cq, cqe, faults);
  }
}

// PurgeCompletions that also drops the held completions.
void Purge(Cq& cq, uint32_t qp_num);

}  // namespace softverbs

#endif  // SOFTVERBS_CQ_HELD_COMPLETIONS_H_
