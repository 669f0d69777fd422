#ifndef SOFTVERBS_BASE_DEVICES_H_
#define SOFTVERBS_BASE_DEVICES_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace softverbs {

// The devices that this process sees: softverbs0, and with SOFTVERBS_DEVICES=N those up to
// softverbs(N-1). All functions are thread safe.
//
// 1. Each address of the host belongs to one device. 127.0.K.x belongs to device K if there is one,
//    all other addresses to device 0. SOFTVERBS_DEVICE_ADDRESSES says it otherwise: a list with an
//    item for each device, of addresses joined by "+". What it does not name belongs to device 0.
// 2. A device is known by its GIDs, its name and its GUID. All devices of the process share one
//    adapter (nic/nic.h): its queue pair numbers, keys, links and thread.
// 3. Wrong settings end the process with status 2. Several devices go neither with SOFTVERBS_NET,
//    which is one address, nor with an InfiniBand link layer, where there is one LID.

constexpr int kMaxDevices = 8;

// Which address belongs to which device.
struct DeviceMap {
  int count = 1;
  // By device. Empty if SOFTVERBS_DEVICE_ADDRESSES is not set.
  std::vector<std::vector<ibv_gid>> named;

  int DeviceOf(const ibv_gid& gid) const;
};

// Parses the values of SOFTVERBS_DEVICES and SOFTVERBS_DEVICE_ADDRESSES; null is a variable that is
// not set. Returns false if one of them is wrong, and `*error` says what is accepted.
bool ParseDevices(const char* count, const char* addresses, DeviceMap* map, std::string* error);

int DeviceCount();
int DeviceOf(const ibv_gid& gid);

// Returns the loopback addresses of a device. The kernel's list of addresses need not have them:
// all of 127.0.0.0/8 is this host's.
std::vector<ibv_gid> LoopbackGidsOf(int device);

// "softverbs0"
std::string DeviceName(int device);
// Returns whether it is the name of one of this process's devices.
bool IsDeviceName(std::string_view name);
// Returns the node GUID, in host byte order. That of device 0 is HostGuid().
uint64_t DeviceGuid(int device);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_DEVICES_H_
