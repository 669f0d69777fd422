#ifndef GANNET_SERVER_RPC_NOW_H_
#define GANNET_SERVER_RPC_NOW_H_

#include <cstdint>

#include "common/base/clock.h"

namespace gannet {

// The times at which one Poll happens, given to it by the main loop or by a simulation.
struct Now {
  int64_t monotonic_ns = 0;
  uint64_t wall_ms = 0;

  // For main loops only.
  static Now Read() { return {MonotonicNs(), WallMs()}; }
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_NOW_H_
