#ifndef SOFTVERBS_PRELOAD_NEXT_CALL_H_
#define SOFTVERBS_PRELOAD_NEXT_CALL_H_

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

// Declares and begins the definition of a function that takes the place of the C library's. It has
// another name in C++, because headers may declare or define the C library's in their own ways.
#define TAKE_PLACE_OF(name, result, ...)                                                          \
  extern "C" __attribute__((visibility("default"))) result sv_##name(__VA_ARGS__) __asm__(#name); \
  result sv_##name(__VA_ARGS__)

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
