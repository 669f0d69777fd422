#ifndef GANNET_COMMON_RDMA_PORT_H_
#define GANNET_COMMON_RDMA_PORT_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

namespace gannet {

// Returns the bytes of a packet; 0 if the device does not say.
constexpr uint32_t MtuBytes(ibv_mtu mtu) { return mtu < IBV_MTU_256 ? 0 : 128u << mtu; }

// What a port of a device is like now.
struct Port {
  bool up = false;
  uint32_t mtu_bytes = 0;        // 0: unknown
  uint32_t mbit_per_second = 0;  // of its link; 0: unknown
};

// A port that cannot be asked is down.
Port LookAtPort(ibv_context* verbs, uint8_t number);

// Returns what a link with these numbers of ibv_port_attr carries, without what its coding takes; 0
// if they are unknown.
uint32_t LinkMbitPerSecond(uint8_t active_speed, uint8_t active_width);

// What a connection's device said of its paths (alternate_paths.h).
struct PathEvent {
  uint8_t port = 0;    // by which the connection goes now; 0: unknown
  bool moved = false;  // or the peer asked to move elsewhere, or there was no way
};

// Takes the events of the device that nobody has taken yet, and never blocks. Adds those about
// paths. Returns true if one says that the device has failed for good.
bool TakeDeviceEvents(ibv_context* verbs, std::vector<PathEvent>* paths);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_PORT_H_
