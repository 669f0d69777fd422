#ifndef GANNET_SERVER_SESSIONS_LOCKS_CPU_LOCK_CAS_H_
#define GANNET_SERVER_SESSIONS_LOCKS_CPU_LOCK_CAS_H_

#include <deque>
#include <span>
#include <utility>

#include "server/sessions/locks/lock_cas.h"

namespace gannet {

// Changes lock words by the server's CPU: LockMode::kRpcServer, for devices without atomics (siw).
// The swap happens in Start; only its report waits for Poll.
class CpuLockCas final : public LockCas {
 public:
  static constexpr size_t kDepth = 64;

  explicit CpuLockCas(std::span<uint64_t> words) : words_(words) {}

  bool Start(size_t index, uint64_t expected, uint64_t desired, Done done) override;
  bool Poll() override;
  size_t in_flight() const override { return reports_.size(); }
  size_t depth() const override { return kDepth; }
  bool broken() const override { return false; }
  void BeginDrain() override { Poll(); }
  bool LookDrained() override { return true; }

 private:
  const std::span<uint64_t> words_;
  std::deque<std::pair<Done, uint64_t>> reports_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_LOCKS_CPU_LOCK_CAS_H_
