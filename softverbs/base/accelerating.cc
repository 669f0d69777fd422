#include "softverbs/base/accelerating.h"

#include <cstdlib>
#include <cstring>

namespace softverbs {
namespace internal {

// Constant-initialised, because the environment's fault plan may be read before `wanted` is
// initialised.
constinit std::atomic<bool> accelerating{true};

}  // namespace internal
namespace {

const bool wanted = [] {
  const char* value = getenv("SOFTVERBS_ACCELERATE");
  const bool on = value == nullptr || strcmp(value, "0") != 0;
  if (!on) internal::accelerating.store(false, std::memory_order_relaxed);
  return on;
}();

}  // namespace

void SetAccelerating(bool on) {
  internal::accelerating.store(on && wanted, std::memory_order_relaxed);
}

}  // namespace softverbs
