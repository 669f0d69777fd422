#include "softverbs/base/devices.h"

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "softverbs/base/gid.h"
#include "softverbs/base/net_config.h"

namespace softverbs {
namespace {

constexpr std::string_view kName = "softverbs";
constexpr size_t kThirdByte = 14;  // of an IPv4 address in a GID

bool IsIn(const std::vector<ibv_gid>& gids, const ibv_gid& gid) {
  return std::ranges::any_of(gids, [&](const ibv_gid& each) { return Equal(each, gid); });
}

ibv_gid LoopbackOfPort(int port) {
  const uint32_t address = INADDR_LOOPBACK + (static_cast<uint32_t>(port) << 8);
  return MappedIpv4({htonl(address)});
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == text.npos ? end : end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

// An empty text changes nothing.
bool ParseCount(const char* value, int max, int* count) {
  const std::string_view text = value == nullptr ? "" : value;
  if (text.empty()) return true;
  if (text.size() != 1 || text[0] < '1' || text[0] > '0' + max) return false;
  *count = text[0] - '0';
  return true;
}

bool ParseAddresses(std::string_view text, DeviceMap* map) {
  const std::vector<std::string_view> ports = Split(text, ',');
  if (ports.size() != static_cast<size_t>(map->count * map->ports_each)) return false;
  for (const std::string_view port : ports) {
    std::vector<ibv_gid> gids;
    for (const std::string_view address : Split(port, '+')) {
      const auto gid = ParseHostAddress(std::string(address));
      const auto has_it = [&](const std::vector<ibv_gid>& other) { return IsIn(other, *gid); };
      if (!gid || has_it(gids) || std::ranges::any_of(map->named, has_it)) return false;
      gids.push_back(*gid);
    }
    map->named.push_back(std::move(gids));
  }
  return true;
}

[[noreturn]] void Refuse(const std::string& why) {
  fprintf(stderr, "softverbs[%d]: %s\n", getpid(), why.c_str());
  _exit(2);
}

// The addresses for other hosts belong to their devices.
void FitToNet(const NetConfig& net, DeviceMap* map) {
  if (net.gids.size() != static_cast<size_t>(map->count)) {
    Refuse("SOFTVERBS_DEVICES: SOFTVERBS_NET has an address for each device, separated by commas");
  }
  if (map->ports_each > 1) {
    Refuse("SOFTVERBS_DEVICE_PORTS: SOFTVERBS_NET has the address of one port of a device");
  }
  if (map->count == 1) return;
  if (map->named.empty()) {
    for (const ibv_gid& gid : net.gids) map->named.push_back({gid});
  }
  for (int device = 0; device < map->count; ++device) {
    if (map->PortOf(net.gids[static_cast<size_t>(device)]) != device) {
      Refuse("SOFTVERBS_DEVICE_ADDRESSES: each device has its address of SOFTVERBS_NET");
    }
  }
}

const DeviceMap& Devices() {
  // Never destroyed: a program may use the device while it ends.
  static const DeviceMap* const devices = [] {
    auto* map = new DeviceMap;
    std::string error;
    if (!ParseDevices(getenv("SOFTVERBS_DEVICES"), getenv("SOFTVERBS_DEVICE_PORTS"),
                      getenv("SOFTVERBS_DEVICE_ADDRESSES"), map, &error)) {
      Refuse(error);
    }
    if (Net() != nullptr) FitToNet(*Net(), map);
    return map;
  }();
  return *devices;
}

}  // namespace

int DeviceMap::PortOf(const ibv_gid& gid) const {
  for (size_t port = 0; port < named.size(); ++port) {
    if (IsIn(named[port], gid)) return static_cast<int>(port);
  }
  if (!named.empty() || !IsLoopback(gid) || gid.raw[13] != 0) return 0;
  const int port = gid.raw[kThirdByte];
  return port < count * ports_each ? port : 0;
}

bool ParseDevices(const char* count, const char* ports, const char* addresses, DeviceMap* map,
                  std::string* error) {
  if (!ParseCount(count, kMaxDevices, &map->count)) {
    *error = "SOFTVERBS_DEVICES is a number from 1 to 8";
    return false;
  }
  if (!ParseCount(ports, 2, &map->ports_each)) {
    *error = "SOFTVERBS_DEVICE_PORTS is 1 or 2";
    return false;
  }
  if (addresses == nullptr || *addresses == '\0') return true;
  if (!ParseAddresses(addresses, map)) {
    *error =
        "SOFTVERBS_DEVICE_ADDRESSES has an item for each port of SOFTVERBS_DEVICES, of addresses "
        "joined by \"+\", each of them once: 10.0.0.1,10.0.1.1+fd00::1";
    return false;
  }
  return true;
}

int DeviceCount() { return Devices().count; }
int PortsEach() { return Devices().ports_each; }
int PortCount() { return DeviceCount() * PortsEach(); }
int PortOf(const ibv_gid& gid) { return PortCount() == 1 ? 0 : Devices().PortOf(gid); }
int PortOf(int device, unsigned number) {
  return device * PortsEach() + static_cast<int>(number) - 1;
}
int DeviceOf(int port) { return port / PortsEach(); }
uint8_t PortNumber(int port) { return static_cast<uint8_t>(port % PortsEach() + 1); }
bool HasPort(unsigned number) {
  return number >= 1 && number <= static_cast<unsigned>(PortsEach());
}

std::vector<ibv_gid> LoopbackGidsOf(int port) {
  const DeviceMap& devices = Devices();
  std::vector<ibv_gid> gids;
  if (!devices.named.empty()) {
    std::ranges::copy_if(devices.named[static_cast<size_t>(port)], std::back_inserter(gids),
                         IsLoopback);
  }
  const ibv_gid own = LoopbackOfPort(port);
  if (devices.PortOf(own) == port && !IsIn(gids, own)) gids.push_back(own);
  return gids;
}

std::string DeviceName(int device) { return std::string(kName) + std::to_string(device); }

bool IsDeviceName(std::string_view name) {
  if (name.size() != kName.size() + 1 || !name.starts_with(kName)) return false;
  return name.back() >= '0' && name.back() < '0' + DeviceCount();
}

uint64_t DeviceGuid(int device) { return HostGuid() ^ static_cast<uint64_t>(device); }

}  // namespace softverbs
