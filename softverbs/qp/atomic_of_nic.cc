#include "softverbs/qp/atomic_of_nic.h"

#include <sched.h>

#include <mutex>

namespace softverbs {
namespace {

std::mutex window_mutex;
void (*window_function)(void*) = nullptr;  // guarded by window_mutex, as is its argument
void* window_argument = nullptr;

void Window() {
  const std::lock_guard<std::mutex> guard(window_mutex);
  if (window_function != nullptr) {
    window_function(window_argument);
  } else {
    sched_yield();
  }
}

}  // namespace

void SetAtomicWindow(void (*window)(void*), void* argument) {
  const std::lock_guard<std::mutex> guard(window_mutex);
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
