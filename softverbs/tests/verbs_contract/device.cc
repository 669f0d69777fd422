#include "softverbs/tests/verbs_contract/device.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "softverbs/tests/verbs_contract/host.h"

namespace verbs_contract {
namespace {

Device the_device{};

// This host's addresses, loopback last: rdma_cm takes any device for it. 127.0.1.1, which no
// interface lists, is of softverbs1.
std::vector<sockaddr_storage> LocalAddresses() {
  std::vector<sockaddr_storage> outer, loopback;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return outer;
  for (const ifaddrs* entry = interfaces; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_storage address{};
    std::memcpy(&address, entry->ifa_addr, sizeof(sockaddr_in));
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    const bool is_loopback = ntohl(ipv4.sin_addr.s_addr) >> 24 == 127;
    (is_loopback ? loopback : outer).push_back(address);
  }
  freeifaddrs(interfaces);
  outer.insert(outer.end(), loopback.begin(), loopback.end());
  sockaddr_storage second{};
  auto& ipv4 = reinterpret_cast<sockaddr_in&>(second);
  ipv4.sin_family = AF_INET;
  ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 256);
  outer.push_back(second);
  return outer;
}

// Returns the name of the device that rdma_cm binds this address to, or an empty text.
std::string DeviceAt(const sockaddr_storage& address) {
  const AtHost at_servers(Host::kServers);
  std::string name;
  rdma_event_channel* events = rdma_create_event_channel();
  if (events == nullptr) return name;
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(events, &id, nullptr, RDMA_PS_TCP) == 0) {
    sockaddr_storage copy = address;
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&copy)) == 0 && id->verbs != nullptr) {
      name = ibv_get_device_name(id->verbs->device);
    }
    rdma_destroy_id(id);
  }
  rdma_destroy_event_channel(events);
  return name;
}

// Returns this address alone, or nothing if it is none.
std::vector<sockaddr_storage> OnlyAddress(const std::string& text) {
  sockaddr_storage address{};
  auto& ipv4 = reinterpret_cast<sockaddr_in&>(address);
  ipv4.sin_family = AF_INET;
  if (inet_pton(AF_INET, text.c_str(), &ipv4.sin_addr) != 1) return {};
  return {address};
}

bool FindAddress(const std::string& wanted, Device* device) {
  for (const sockaddr_storage& address : wanted.empty() ? LocalAddresses() : OnlyAddress(wanted)) {
    if (DeviceAt(address) != device->name) continue;
    device->address = address;
    return true;
  }
  std::fprintf(stderr, "verbs_contract: %s of this host leads to %s\n",
               wanted.empty() ? "no IPv4 address" : ("no address " + wanted).c_str(), device->name);
  return false;
}

bool Describe(ibv_device* found, Device* device) {
  std::snprintf(device->name, sizeof(device->name), "%s", ibv_get_device_name(found));
  device->transport = found->transport_type;
  ibv_context* verbs = ibv_open_device(found);
  if (verbs == nullptr) {
    std::perror("verbs_contract: ibv_open_device");
    return false;
  }
  const int error = ibv_query_device(verbs, &device->attr);
  ibv_close_device(verbs);
  if (error != 0) std::fprintf(stderr, "verbs_contract: ibv_query_device: %s\n", strerror(error));
  return error == 0;
}

}  // namespace

const Device& TheDevice() { return the_device; }
void UseDevice(const Device& device) { the_device = device; }

bool ChooseDevice(const std::string& name, const std::string& address) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  ibv_device* found = nullptr;
  std::string names;
  for (int i = 0; list != nullptr && i < count; ++i) {
    const char* listed = ibv_get_device_name(list[i]);
    names += std::string(" ") + listed;
    if (found == nullptr && (name.empty() || name == listed)) found = list[i];
  }
  Device device{};
  const bool chosen = found != nullptr && Describe(found, &device) && FindAddress(address, &device);
  if (found == nullptr) {
    std::fprintf(stderr, "verbs_contract: there is no RDMA device %s; there are:%s\n", name.c_str(),
                 names.empty() ? " none" : names.c_str());
  }
  if (list != nullptr) ibv_free_device_list(list);
  device.over_tcp = !address.empty();
  if (chosen) UseDevice(device);
  return chosen;
}

}  // namespace verbs_contract
