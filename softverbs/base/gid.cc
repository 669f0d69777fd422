#include "softverbs/base/gid.h"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace softverbs {
namespace {

// FNV-1a. The hash only has to differ between hosts.
uint64_t Hash(uint64_t hash, const void* data, size_t size) {
  auto* bytes = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  return hash;
}

uint64_t ComputeGuid() {
  uint64_t hash = 0xcbf29ce484222325;
  char boot_id[64] = "";
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const ssize_t size = read(fd, boot_id, sizeof(boot_id));
    if (size > 0) hash = Hash(hash, boot_id, static_cast<size_t>(size));
    close(fd);
  }
  struct stat space;
  if (stat("/proc/self/ns/net", &space) == 0) hash = Hash(hash, &space.st_ino, 8);
  // A locally administered EUI-64.
  return (hash & ~(uint64_t{1} << 56)) | uint64_t{1} << 57;
}

}  // namespace

uint64_t HostGuid() {
  static const uint64_t guid = ComputeGuid();
  return guid;
}

ibv_gid MappedIpv4(in_addr address) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  memcpy(gid.raw + 12, &address, sizeof(address));
  return gid;
}

bool IsMappedIpv4(const ibv_gid& gid) {
  return memcmp(gid.raw, MappedIpv4(in_addr{}).raw, sizeof(gid.raw) - sizeof(in_addr)) == 0;
}

bool IsLoopback(const ibv_gid& gid) {
  constexpr uint8_t kLoopbackNet = IN_LOOPBACKNET;
  return IsMappedIpv4(gid) && gid.raw[12] == kLoopbackNet;
}

bool IsMulticastGid(const ibv_gid& gid) {
  return gid.raw[0] == 0xff || (IsMappedIpv4(gid) && IN_MULTICAST(gid.raw[12] << 24));
}

bool Equal(const ibv_gid& gid, const ibv_gid& other) {
  return memcmp(gid.raw, other.raw, sizeof(gid.raw)) == 0;
}

}  // namespace softverbs
