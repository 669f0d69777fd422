#ifndef GANNET_COMMON_BASE_DATA_PATH_CHECKS_H_
#define GANNET_COMMON_BASE_DATA_PATH_CHECKS_H_

namespace gannet {

// Whether checks on data paths are compiled in: in builds for debugging and with sanitizers. In a
// release they would cost every operation some instructions.
#ifdef GANNET_CHECKS_DATA_PATHS
inline constexpr bool kChecksDataPaths = true;
#else
inline constexpr bool kChecksDataPaths = false;
#endif

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_DATA_PATH_CHECKS_H_
