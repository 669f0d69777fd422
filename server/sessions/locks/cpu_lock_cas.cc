#include "server/sessions/locks/cpu_lock_cas.h"

#include "common/base/data_path_checks.h"

namespace gannet {

bool CpuLockCas::Start(size_t index, uint64_t expected, uint64_t desired, Done done) {
  GANNET_CHECK_DATA_PATH(index < words_.size(), "there is no such lock word");
  if (reports_.size() >= kDepth) return false;
  uint64_t old = expected;
  // Acquire and release: a client that takes the lock sees all writes that its last holder had
  // acknowledged, whichever worker executed them.
  __atomic_compare_exchange_n(&words_[index], &old, desired, /*weak=*/false, __ATOMIC_ACQ_REL,
                              __ATOMIC_ACQUIRE);
  reports_.emplace_back(std::move(done), old);
  return true;
}

bool CpuLockCas::Poll() {
  if (reports_.empty()) return false;
  // `done` may call Start, so this reports only what is there now.
  std::deque<std::pair<Done, uint64_t>> reports;
  reports.swap(reports_);
  for (auto& [done, old] : reports) done(true, old);
  return true;
}

}  // namespace gannet
