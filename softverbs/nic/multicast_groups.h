#ifndef SOFTVERBS_NIC_MULTICAST_GROUPS_H_
#define SOFTVERBS_NIC_MULTICAST_GROUPS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/base/unique_fd.h"

namespace softverbs {

// The multicast groups that queue pairs of this process are attached to.
//
// A process that has a queue pair in a group holds the abstract UNIX name
// softverbs/mcast/<group in hex>/<slot>. So the kernel is the registry of groups, and a killed
// process leaves all its groups. Thread safe.
class MulticastGroups {
 public:
  explicit MulticastGroups(uint32_t slot) : slot_(slot) {}

  // Return 0 or an errno value. Attaching a second time has no effect. Detaching a queue pair that
  // is not attached returns EINVAL.
  int Attach(const ibv_gid& group, uint32_t qpn);
  int Detach(const ibv_gid& group, uint32_t qpn);

  bool IsAttached(uint32_t qpn) const;  // to any group
  std::vector<uint32_t> Members(const ibv_gid& group) const;

  // Returns the slots of all processes of this host that have a queue pair in the group. Reads the
  // kernel's list of sockets.
  static std::vector<uint32_t> Slots(const ibv_gid& group);

 private:
  struct Group {
    std::vector<uint32_t> members;  // never empty
    UniqueFd name;
  };

  const uint32_t slot_;
  mutable Mutex mutex_;
  std::map<std::string, Group> groups_ SV_GUARDED_BY(mutex_);  // by name without the slot
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_MULTICAST_GROUPS_H_
