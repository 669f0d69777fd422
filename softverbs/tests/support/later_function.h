#ifndef SOFTVERBS_TESTS_SUPPORT_LATER_FUNCTION_H_
#define SOFTVERBS_TESTS_SUPPORT_LATER_FUNCTION_H_

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace softverbs {

// A function that this machine's headers and libraries need not have, by its name and version.
// Fails the test if softverbs does not have it.
template <class Function>
class LaterFunction;

template <class Result, class... Arguments>
class LaterFunction<Result(Arguments...)> {
 public:
  LaterFunction(const char* name, const char* version)
      : found_(reinterpret_cast<Result (*)(Arguments...)>(dlvsym(RTLD_DEFAULT, name, version))) {
    EXPECT_NE(found_, nullptr) << name;
  }

  // Structs of newer headers are other types here, and so is the function to a sanitizer.
#ifdef __clang__
  __attribute__((no_sanitize("function")))
#endif
  Result
  operator()(Arguments... arguments) const {
    return found_(arguments...);
  }

 private:
  Result (*const found_)(Arguments...);
};

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_SUPPORT_LATER_FUNCTION_H_
