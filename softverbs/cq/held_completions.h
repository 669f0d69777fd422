#ifndef SOFTVERBS_CQ_HELD_COMPLETIONS_H_
#define SOFTVERBS_CQ_HELD_COMPLETIONS_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "softverbs/cq/cq.h"
#include "softverbs/fault/qp_faults.h"

namespace softverbs {

// Completions that the plan delays. Those of one queue pair in one CQ stay in order, so what comes
// behind a delayed one waits too and both arrive at once; those of other queue pairs overtake.
//
// Thread safe. Its mutex is taken after a queue pair's lock and before a CQ's.
class HeldCompletions {
 public:
  static HeldCompletions& Get();

  // Adds the completion to the CQ, now or later.
  void Deliver(Cq& cq, const Cqe& cqe, fault::QpFaults& faults);
  // The queue pair is destroyed or reset: its completions never arrive.
  void Purge(Cq& cq, uint32_t qp_num);
  // All of them, now.
  void ReleaseAll();

 private:
  struct Held {
    Cq* cq;
    Cqe cqe;
    int64_t due_ns;
  };

  // What is due at `now_ns`, in the order it was delivered.
  void Release(int64_t now_ns);

  std::mutex mutex_;
  // Guarded by mutex_. In the order of their delivery. A CQ is destroyed only after its queue
  // pairs, which purge what they have here.
  std::vector<Held> held_;
};

// PushCompletion, for what a plan may delay. REQUIRES: the queue pair's lock held.
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

// PurgeCompletions, for those that wait too.
void Purge(Cq& cq, uint32_t qp_num);

}  // namespace softverbs

#endif  // SOFTVERBS_CQ_HELD_COMPLETIONS_H_
