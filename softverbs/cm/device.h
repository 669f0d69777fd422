#ifndef GANNET_SOFTVERBS_CM_DEVICE_H_
#define GANNET_SOFTVERBS_CM_DEVICE_H_

#include <cstdint>

namespace softverbs::cm {

class CmId;

// The device that ids are bound to: opened once per process, with a default protection domain that
// exists while an id is bound. Thread safe.
// REQUIRES: State::mutex is not held: these call ibv_*.

// What an id may ask for at most.
struct DeviceLimits {
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
};

// Fills the id's verbs, pd, port_num, pkey and limits, once. Returns 0 or an errno.
int BindDevice(CmId* id);
// Undoes it when the id is destroyed.
void ReleaseDevice(CmId* id);

}  // namespace softverbs::cm

#endif  // GANNET_SOFTVERBS_CM_DEVICE_H_
