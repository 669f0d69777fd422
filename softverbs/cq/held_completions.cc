#include "softverbs/cq/held_completions.h"

#include <algorithm>
#include <limits>

#include "softverbs/base/fork.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/mutex.h"
#include "softverbs/nic/loop.h"

namespace softverbs {
namespace {

void Push(Cq& cq, const Cqe& cqe) {
  PushCompletion(cq, [&cqe](Cqe& to) { to = cqe; });
}

HeldCompletions* instance = new HeldCompletions;  // replaced in a forked child

}  // namespace

HeldCompletions& HeldCompletions::Get() {
  static const bool registered = [] {
    OnForkChild([] { instance = new HeldCompletions; });
    return true;
  }();
  (void)registered;
  return *instance;
}

void HeldCompletions::Deliver(Cq& cq, const Cqe& cqe, fault::QpFaults& faults) {
  const fault::Plan* plan = fault::Active();
  std::optional<int64_t> delay;
  if (plan != nullptr) {
    delay = fault::StrikesFor(*plan, fault::FaultKind::kDelayCompletion, faults.ordinal,
                              faults.completions++);
  }
  const LockGuard guard(mutex_);
  int64_t due = delay ? MonotonicNs() + *delay : 0;
  for (const Held& earlier : held_) {
    if (earlier.cq == &cq && earlier.cqe.qp_num == cqe.qp_num) due = std::max(due, earlier.due_ns);
  }
  if (due == 0) return Push(cq, cqe);
  held_.push_back({&cq, cqe, due});
  Loop::Get().RunAt(due, [this, due] { Release(due); });
}

void HeldCompletions::Purge(Cq& cq, uint32_t qp_num) {
  const LockGuard guard(mutex_);
  std::erase_if(held_,
                [&](const Held& held) { return held.cq == &cq && held.cqe.qp_num == qp_num; });
}

void Purge(Cq& cq, uint32_t qp_num) {
  HeldCompletions::Get().Purge(cq, qp_num);  // first, so that what it has released is purged below
  PurgeCompletions(cq, qp_num);
}

void HeldCompletions::ReleaseAll() { Release(std::numeric_limits<int64_t>::max()); }

void HeldCompletions::Release(int64_t now_ns) {
  const LockGuard guard(mutex_);
  std::erase_if(held_, [&](const Held& held) {
    if (held.due_ns > now_ns) return false;
    Push(*held.cq, held.cqe);
    return true;
  });
}

}  // namespace softverbs
