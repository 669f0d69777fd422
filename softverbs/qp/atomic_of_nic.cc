#include "softverbs/qp/atomic_of_nic.h"

#include <sched.h>

#include "softverbs/base/mutex.h"

namespace softverbs {
namespace {

Mutex window_mutex;
void (*window_function)(void*) SV_GUARDED_BY(window_mutex) = nullptr;
void* window_argument SV_GUARDED_BY(window_mutex) = nullptr;

void Window() {
  const LockGuard guard(window_mutex);
  if (window_function != nullptr) {
    window_function(window_argument);
  } else {
    sched_yield();
  }
}

}  // namespace

void SetAtomicWindow(void (*window)(void*), void* argument) {
  const LockGuard guard(window_mutex);
  window_function = window;
  window_argument = argument;
}

uint64_t AtomicOfNic(uint64_t* word, const PacketHeader& request) {
  // Relaxed, and two instructions on purpose: the CPU's locked instructions may come between them.
  const uint64_t original = __atomic_load_n(word, __ATOMIC_RELAXED);
  Window();
  const bool compare = request.type == PacketType::kCompareSwap;
  if (compare && original != request.operand) return original;
  const uint64_t result = compare ? request.swap : original + request.operand;
  __atomic_store_n(word, result, __ATOMIC_RELAXED);
  return original;
}

}  // namespace softverbs
