#ifndef GANNET_COMMON_BASE_DATA_PATH_CHECKS_H_
#define GANNET_COMMON_BASE_DATA_PATH_CHECKS_H_

#include "common/base/check.h"

namespace gannet {

// Whether checks on data paths are compiled in: in builds for debugging and with sanitizers. In a
// release they would cost every operation some instructions.
#ifdef GANNET_CHECKS_DATA_PATHS
inline constexpr bool kChecksDataPaths = true;
#else
inline constexpr bool kChecksDataPaths = false;
#endif

// As GANNET_CHECK, for a condition on a data path. In a release it costs nothing, and the condition
// is not evaluated.
#define GANNET_CHECK_DATA_PATH(condition, what) \
  do {                                          \
    if constexpr (::gannet::kChecksDataPaths) { \
      GANNET_CHECK(condition, what);            \
    }                                           \
  } while (0)

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_DATA_PATH_CHECKS_H_
