#ifndef SOFTVERBS_CM_ACQUIRED_DEVICE_H_
#define SOFTVERBS_CM_ACQUIRED_DEVICE_H_

#include <infiniband/verbs.h>

#include <cstdint>

namespace softverbs::cm {

// The devices that ids are bound to: each is opened once per process, with a default protection
// domain that exists while an id is bound. Thread safe.
// REQUIRES: State::mutex is not held: these call ibv_*.

// The most that an id may ask for.
struct DeviceLimits {
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
};

struct AcquiredDevice {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  DeviceLimits limits;
};

// Takes the device with this number. Returns 0 or an errno. Each success must be followed by one
// ReleaseDevice.
int AcquireDevice(int number, AcquiredDevice* acquired);
void ReleaseDevice(int number);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_ACQUIRED_DEVICE_H_
