#ifndef GANNET_COMMON_BASE_CHECK_H_
#define GANNET_COMMON_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

// GANNET_CHECK(condition, "what is broken"): a bug of ours, never bad input, ends the process. For
// code that is also in the client library, which must not bring glog into its users' programs.
#define GANNET_CHECK(condition, what)                                \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::gannet::CheckFailed(__FILE__, __LINE__, #condition, (what)); \
  } while (0)

namespace gannet {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition,
                                     const char* what) {
  std::fprintf(stderr, "%s:%d: bug: %s (%s)\n", file, line, what, condition);
  std::abort();
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_CHECK_H_
