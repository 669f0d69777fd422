#include "softverbs/nic/atomic_units.h"

#include <infiniband/verbs.h>

namespace softverbs {

uint64_t* AtomicUnits::FindWord(const Operation& operation, WindowTable::Hold* hold) const {
  constexpr unsigned kAccess = IBV_ACCESS_REMOTE_ATOMIC;
  uint8_t* at =
      memory_->Resolve(operation.rkey, operation.addr, sizeof(uint64_t), operation.pd, kAccess);
  if (at == nullptr) {
    at = windows_->Resolve(operation.rkey, operation.addr, sizeof(uint64_t), operation.qpn,
                           operation.pd, kAccess, hold);
  }
  const bool aligned = reinterpret_cast<uintptr_t>(at) % sizeof(uint64_t) == 0;
  return aligned ? reinterpret_cast<uint64_t*>(at) : nullptr;
}

bool AtomicUnits::Begin(int device, const std::shared_ptr<Operation>& operation) {
  const LockGuard guard(mutex_);
  std::shared_ptr<Operation>& busy = busy_[static_cast<size_t>(device)];
  if (busy != nullptr) FinishLocked(*busy);
  busy.reset();
  WindowTable::Hold hold;
  const uint64_t* word = FindWord(*operation, &hold);
  if (word == nullptr) return false;
  // Relaxed, as all that a device does with memory: the answer's way orders it for the requester.
  operation->original = __atomic_load_n(word, __ATOMIC_RELAXED);
  busy = operation;
  return true;
}

void AtomicUnits::Finish(Operation& operation) {
  const LockGuard guard(mutex_);
  FinishLocked(operation);
}

void AtomicUnits::FinishLocked(Operation& operation) {
  if (operation.IsDone()) return;
  WindowTable::Hold hold;
  uint64_t* word = FindWord(operation, &hold);
  const bool writes = !operation.is_swap || operation.original == operation.operand;
  if (word != nullptr && writes) {
    const uint64_t sum = operation.original + operation.operand;
    __atomic_store_n(word, operation.is_swap ? operation.swap : sum, __ATOMIC_RELAXED);
  }
  operation.done.store(true, std::memory_order_release);
}

}  // namespace softverbs
