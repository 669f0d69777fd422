#ifndef SOFTVERBS_BASE_PORT_STATE_H_
#define SOFTVERBS_BASE_PORT_STATE_H_

#include <atomic>
#include <cstdint>

namespace softverbs {

// Which ports are down, counted over all devices (nic/ports.h changes it), a bit each. Relaxed: a
// packet on its way while this changes passes or not, as on a cable that is pulled.
inline constinit std::atomic<uint32_t> ports_down{0};

inline bool AnyPortDown() { return ports_down.load(std::memory_order_relaxed) != 0; }
inline bool IsPortDown(int port) {
  return (ports_down.load(std::memory_order_relaxed) >> port & 1) != 0;
}

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_PORT_STATE_H_
