#ifndef GANNET_SERVER_SESSIONS_LOCKS_CLOSED_LOCK_CAS_H_
#define GANNET_SERVER_SESSIONS_LOCKS_CLOSED_LOCK_CAS_H_

#include <cstddef>
#include <cstdint>

#include "server/sessions/locks/lock_cas.h"

namespace gannet {

// Swaps nothing: the lock rail is dead, and no other one serves yet.
class ClosedLockCas final : public LockCas {
 public:
  bool Start(size_t /*index*/, uint64_t /*expected*/, uint64_t /*desired*/,
             Done /*done*/) override {
    return false;
  }
  bool Poll() override { return false; }
  size_t in_flight() const override { return 0; }
  size_t depth() const override { return 0; }
  bool broken() const override { return false; }
  void BeginDrain() override {}
  bool LookDrained() override { return true; }
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_LOCKS_CLOSED_LOCK_CAS_H_
