#ifndef GANNET_TESTS_SOFTVERBS_SUPPORT_LATER_FUNCTION_H_
#define GANNET_TESTS_SOFTVERBS_SUPPORT_LATER_FUNCTION_H_

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace softverbs {

// Returns a function that this machine's headers and libraries need not have, by its name and
// version. Fails the test if softverbs does not have it.
template <class Function>
Function* LaterFunction(const char* name, const char* version) {
  auto* found = reinterpret_cast<Function*>(dlvsym(RTLD_DEFAULT, name, version));
  EXPECT_NE(found, nullptr) << name;
  return found;
}

}  // namespace softverbs

#endif  // GANNET_TESTS_SOFTVERBS_SUPPORT_LATER_FUNCTION_H_
