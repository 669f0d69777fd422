#ifndef SOFTVERBS_PRELOAD_NEXT_CALL_H_
#define SOFTVERBS_PRELOAD_NEXT_CALL_H_

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace softverbs::preload {

// The name of a function, for templates.
template <size_t kSize>
struct CallName {
  consteval CallName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }
  char text[kSize];
};

// Returns the function that the program would have called without this library. Looks for it once.
// No static variable with a guard: an allocator may open a file while it begins, within dlsym.
template <CallName kName, class Function>
Function* Next() {
  static constinit std::atomic<Function*> found{nullptr};
  // relaxed: all threads find the same
  Function* next = found.load(std::memory_order_relaxed);
  if (next == nullptr) {
    next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, kName.text));
    found.store(next, std::memory_order_relaxed);
  }
  return next;
}

}  // namespace softverbs::preload

#endif  // SOFTVERBS_PRELOAD_NEXT_CALL_H_
