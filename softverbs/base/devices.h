#ifndef SOFTVERBS_BASE_DEVICES_H_
#define SOFTVERBS_BASE_DEVICES_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace softverbs {

// The devices that this process sees: softverbs0, and with SOFTVERBS_DEVICES=N those up to
// softverbs(N-1). Each has one port, or two with SOFTVERBS_DEVICE_PORTS=2. All functions are thread
// safe.
//
// 1. A *port* is counted over all devices, from 0: with two ports a device, 2 and 3 are those of
//    softverbs1. A *port number* is what verbs say, 1 or 2. With one port a device, a device and
//    its port have the same number.
// 2. Each address of the host belongs to one port. 127.0.K.x belongs to port K if there is one, all
//    other addresses to port 0. SOFTVERBS_DEVICE_ADDRESSES says it otherwise: a list with an item
//    for each port, of addresses joined by "+". What it does not name belongs to port 0.
// 3. A device is known by its GIDs, its name and its GUID. All devices of the process share one
//    adapter (nic/nic.h): its queue pair numbers, keys, links and thread.
// 4. Wrong settings end the process with status 2. With SOFTVERBS_NET, which has an address for
//    each device, devices have one port.

constexpr int kMaxDevices = 8;
constexpr int kMaxPorts = 2 * kMaxDevices;

// Which address belongs to which port.
struct DeviceMap {
  int count = 1;       // of devices
  int ports_each = 1;  // 1 or 2
  // By port. Empty if SOFTVERBS_DEVICE_ADDRESSES is not set.
  std::vector<std::vector<ibv_gid>> named;

  int PortOf(const ibv_gid& gid) const;
};

// Parses the values of SOFTVERBS_DEVICES, SOFTVERBS_DEVICE_PORTS and SOFTVERBS_DEVICE_ADDRESSES;
// null is a variable that is not set. Returns false if one of them is wrong, and `*error` says what
// is accepted.
bool ParseDevices(const char* count, const char* ports, const char* addresses, DeviceMap* map,
                  std::string* error);

int DeviceCount();
int PortsEach();
int PortCount();
// Returns the port of an address.
int PortOf(const ibv_gid& gid);
// Returns the port of a device with this port number. REQUIRES: HasPort(number).
int PortOf(int device, unsigned number);
int DeviceOf(int port);
uint8_t PortNumber(int port);
// Returns whether devices have a port with this number.
bool HasPort(unsigned number);

// Returns the loopback addresses of a port. The kernel's list of addresses need not have them: all
// of 127.0.0.0/8 is this host's.
std::vector<ibv_gid> LoopbackGidsOf(int port);

// "softverbs0"
std::string DeviceName(int device);
// Returns whether it is the name of one of this process's devices.
bool IsDeviceName(std::string_view name);
// Returns the node GUID, in host byte order. That of device 0 is HostGuid().
uint64_t DeviceGuid(int device);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_DEVICES_H_
