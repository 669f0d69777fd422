#ifndef GANNET_COMMON_BASE_CHECK_H_
#define GANNET_COMMON_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

// GANNET_CHECK(condition, "what is broken") ends the process if the condition is false. Use it for
// our own bugs, never for bad input. It exists because glog must not get into the programs of the
// client library's users.
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
