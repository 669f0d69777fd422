#ifndef GANNET_COMMON_BASE_CLIENT_CLOCK_H_
#define GANNET_COMMON_BASE_CLIENT_CLOCK_H_

#include <cstdint>

#include "common/base/clocks.h"

namespace gannet {

// The clock of the client's state machines. Tests and simulations replace it to run them in virtual
// time. Thread safe.
class ClientClock {
 public:
  virtual ~ClientClock() = default;
  // Never goes back, and goes on while the machine is suspended: what a client was told of its
  // server's clock, and when, must stay true.
  virtual int64_t MonotonicNs() const { return BootNs(); }
  // The machine's wall clock, by which a server with keys sees that a request is fresh.
  virtual WallTime Wall() const { return MachineWallTime(); }

  // The machine's clock.
  static const ClientClock& Real() {
    static const ClientClock clock;
    return clock;
  }
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_CLIENT_CLOCK_H_
