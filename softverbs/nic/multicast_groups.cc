#include "softverbs/nic/multicast_groups.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "softverbs/base/mutex.h"
#include "softverbs/base/verbs_limits.h"
#include "softverbs/nic/shared_tables.h"

namespace softverbs {
namespace {

// Returns "softverbs/mcast/<32 hexadecimal digits>/".
std::string GroupName(const ibv_gid& group) {
  std::string name = "softverbs/mcast/";
  for (uint8_t byte : group.raw) {
    char digits[3];
    snprintf(digits, sizeof(digits), "%02x", byte);
    name += digits;
  }
  return name + "/";
}

// Returns an invalid descriptor and sets errno if there is no descriptor left.
UniqueFd HoldName(const std::string& name) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (fd && bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) fd.Reset();
  return fd;
}

}  // namespace

int MulticastGroups::Attach(const ibv_gid& group, uint32_t qpn) {
  const std::string name = GroupName(group);
  const LockGuard guard(mutex_);
  auto found = groups_.find(name);
  if (found == groups_.end()) {
    if (groups_.size() >= kMaxObjects) return ENOMEM;
    UniqueFd holder = HoldName(name + std::to_string(slot_));
    if (!holder) return errno;
    found = groups_.emplace(name, Group{{}, std::move(holder)}).first;
  }
  std::vector<uint32_t>& members = found->second.members;
  if (std::find(members.begin(), members.end(), qpn) == members.end()) members.push_back(qpn);
  return 0;
}

int MulticastGroups::Detach(const ibv_gid& group, uint32_t qpn) {
  const LockGuard guard(mutex_);
  const auto found = groups_.find(GroupName(group));
  if (found == groups_.end()) return EINVAL;
  std::vector<uint32_t>& members = found->second.members;
  const auto member = std::find(members.begin(), members.end(), qpn);
  if (member == members.end()) return EINVAL;
  members.erase(member);
  if (members.empty()) groups_.erase(found);
  return 0;
}

bool MulticastGroups::IsAttached(uint32_t qpn) const {
  const LockGuard guard(mutex_);
  return std::any_of(groups_.begin(), groups_.end(), [qpn](const auto& entry) {
    const std::vector<uint32_t>& members = entry.second.members;
    return std::find(members.begin(), members.end(), qpn) != members.end();
  });
}

std::vector<uint32_t> MulticastGroups::Members(const ibv_gid& group) const {
  const LockGuard guard(mutex_);
  const auto found = groups_.find(GroupName(group));
  return found == groups_.end() ? std::vector<uint32_t>() : found->second.members;
}

std::vector<uint32_t> MulticastGroups::Slots(const ibv_gid& group) {
  const std::string name = "@" + GroupName(group);
  std::vector<uint32_t> slots;
  std::ifstream list("/proc/net/unix");
  for (std::string line; std::getline(list, line);) {
    const size_t at = line.find(name);
    if (at == std::string::npos) continue;
    uint32_t slot = 0;
    const char* digits = line.data() + at + name.size();
    std::from_chars(digits, line.data() + line.size(), slot);
    if (slot > 0 && slot < kSlots) slots.push_back(slot);
  }
  return slots;
}

}  // namespace softverbs
