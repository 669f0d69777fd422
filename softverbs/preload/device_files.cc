#include "softverbs/preload/device_files.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <net/if.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>

#include "softverbs/abi/query_verbs.h"
#include "softverbs/base/devices.h"
#include "softverbs/base/link_layer.h"

namespace softverbs::preload {
namespace {

__attribute__((format(printf, 1, 2))) std::string Line(const char* format, ...) {
  char text[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return std::string(text) + "\n";
}

// Groups of four digits, as the kernel prints GUIDs and GIDs.
std::string InGroups(const uint8_t* bytes, size_t size) {
  std::string text;
  for (size_t i = 0; i < size; i += 2) {
    char group[8];
    snprintf(group, sizeof(group), "%02x%02x", bytes[i], bytes[i + 1]);
    text += (i == 0 ? "" : ":") + std::string(group);
  }
  return text + "\n";
}

std::string GuidLine(__be64 guid) {
  return InGroups(reinterpret_cast<const uint8_t*>(&guid), sizeof(guid));
}

std::string InterfaceName(uint32_t interface) {
  char name[IF_NAMESIZE];
  return interface != 0 && if_indextoname(interface, name) != nullptr ? name : "";
}

void AddDevice(int number, std::vector<DeviceFile>* files) {
  const ibv_device_attr device = DeviceAttributes(number);
  files->push_back({"node_type", "1: CA\n"});
  files->push_back({"node_guid", GuidLine(device.node_guid)});
  files->push_back({"sys_image_guid", GuidLine(device.sys_image_guid)});
  files->push_back({"node_desc", "softverbs\n"});
  files->push_back({"hca_type", "softverbs\n"});
  files->push_back({"fw_ver", Line("%s", device.fw_ver)});
  files->push_back({"hw_rev", Line("%x", device.hw_ver)});
}

// Ports are always active, with four lanes of EDR (PortAttributes of query_verbs.cc).
void AddPort(int counted, const std::string& folder, std::vector<DeviceFile>* files) {
  ibv_port_attr port;
  QueryPort(nullptr, 1, &port, sizeof(port));
  files->push_back({folder + "state", "4: ACTIVE\n"});
  files->push_back({folder + "phys_state", "5: LinkUp\n"});
  files->push_back({folder + "rate", "100 Gb/sec (4X EDR)\n"});
  files->push_back({folder + "link_layer", IsInfiniBand() ? "InfiniBand\n" : "Ethernet\n"});
  files->push_back({folder + "cap_mask", Line("0x%08x", port.port_cap_flags)});
  files->push_back({folder + "lid", Line("0x%x", LidOfPort(counted))});
  files->push_back({folder + "lid_mask_count", Line("%d", port.lmc)});
  files->push_back({folder + "sm_lid", Line("0x%x", port.sm_lid)});
  files->push_back({folder + "sm_sl", Line("%d", port.sm_sl)});
  __be16 pkey = 0;
  ibv_query_pkey(nullptr, 1, 0, &pkey);
  files->push_back({folder + "pkeys/0", Line("0x%04x", be16toh(pkey))});
}

void AddGids(const std::vector<Gid>& gids, const std::string& folder,
             std::vector<DeviceFile>* files) {
  std::vector<ibv_gid> table(kGidTableSize);
  for (const Gid& gid : gids) {
    const std::string index = std::to_string(gid.index);
    table[static_cast<size_t>(gid.index)] = gid.gid;
    files->push_back(
        {folder + "gid_attrs/types/" + index, IsInfiniBand() ? "IB/RoCE v1\n" : "RoCE v2\n"});
    const std::string interface = InterfaceName(gid.interface);
    if (!interface.empty()) {
      files->push_back({folder + "gid_attrs/ndevs/" + index, interface + "\n"});
    }
  }
  for (size_t index = 0; index < table.size(); ++index) {
    files->push_back({folder + "gids/" + std::to_string(index),
                      InGroups(table[index].raw, sizeof(table[index].raw))});
  }
}

}  // namespace

std::vector<DeviceFile> DeviceFiles(int number, const std::vector<std::vector<Gid>>& gids) {
  std::vector<DeviceFile> files;
  AddDevice(number, &files);
  for (unsigned each = 1; HasPort(each); ++each) {
    const int port = PortOf(number, each);
    const std::string folder = "ports/" + std::to_string(each) + "/";
    AddPort(port, folder, &files);
    AddGids(gids[static_cast<size_t>(port)], folder, &files);
  }
  return files;
}

std::string NetworkInterface(const std::vector<Gid>& gids) {
  return gids.empty() ? "" : InterfaceName(gids.front().interface);
}

}  // namespace softverbs::preload
