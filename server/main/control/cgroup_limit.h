#ifndef GANNET_SERVER_MAIN_CONTROL_CGROUP_LIMIT_H_
#define GANNET_SERVER_MAIN_CONTROL_CGROUP_LIMIT_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"

namespace gannet {

// How much memory the kernel lets the processes of a control group have: a container, a pod, a
// service. It kills one that goes beyond.
struct CgroupLimit {
  uint64_t bytes = std::numeric_limits<uint64_t>::max();  // no limit
  std::string file;                                       // that says so
};

// Returns the least limit of this process's control groups, of version 1 or 2. `root` is put before
// the paths of the kernel's files, for tests.
CgroupLimit CgroupLimitOfProcess(const std::string& root = "");

// Returns how many bytes of reserved huge pages are free.
uint64_t FreeHugePageBytes(const std::string& root = "");

// Returns ResourceExhausted if a region of so many bytes is more than the limit; the text says what
// to do. Logs a warning if there is hardly room for the rest of a server.
absl::Status CheckCgroupLimit(uint64_t region_bytes, const CgroupLimit& limit);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_CGROUP_LIMIT_H_
