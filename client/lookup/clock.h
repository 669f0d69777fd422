#ifndef GANNET_CLIENT_LOOKUP_CLOCK_H_
#define GANNET_CLIENT_LOOKUP_CLOCK_H_

#include <cstdint>

#include "common/base/clock.h"

namespace gannet {

// The clock of the client's state machines. Tests and simulations replace it to run them in virtual
// time. Thread safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t MonotonicNs() const { return gannet::MonotonicNs(); }

  // The machine's clock.
  static const Clock* Real() {
    static const Clock clock;
    return &clock;
  }
};

}  // namespace gannet

#endif  // GANNET_CLIENT_LOOKUP_CLOCK_H_
