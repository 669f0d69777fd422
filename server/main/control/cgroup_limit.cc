#include "server/main/control/cgroup_limit.h"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"

namespace gannet {
namespace {

// What a server needs beside the region at least (docs/kvserver.md, "Memory").
constexpr uint64_t kRestBytes = 64 << 20;
constexpr uint64_t kRestShare = 16;  // of the region
constexpr uint64_t kHugePageBytes = 2 << 20;

// Takes the limit that a file has, if it is less. Version 1 says a number near 2^63, and version 2
// "max", where there is none.
void TakeLimit(const std::string& file, CgroupLimit* least) {
  std::ifstream stream(file);
  std::string word;
  uint64_t bytes = 0;
  if (!(stream >> word) || !absl::SimpleAtoi(word, &bytes) || bytes >= least->bytes) return;
  if (bytes < uint64_t{1} << 60) *least = {.bytes = bytes, .file = file};
}

// A group's limit holds for those below it. A container that sees only its own groups has the path
// of the host's all the same, so each end of the path is tried, down to the folder itself.
void TakeLimits(const std::string& folder, std::string_view path, const char* name,
                CgroupLimit* least) {
  while (true) {
    TakeLimit(absl::StrCat(folder, std::string(path), "/", name), least);
    const size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return;
    path = path.substr(0, slash);
  }
}

}  // namespace

CgroupLimit CgroupLimitOfProcess(const std::string& root) {
  CgroupLimit least;
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  const std::string folder = absl::StrCat(root, "/sys/fs/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // NUMBER:CONTROLLERS:PATH. Version 2 has no controllers there.
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      TakeLimits(folder, parts[2], "memory.max", &least);
    } else if (std::ranges::find(controllers, "memory") != controllers.end()) {
      TakeLimits(folder + "/memory", parts[2], "memory.limit_in_bytes", &least);
    }
  }
  return least;
}

uint64_t FreeHugePageBytes(const std::string& root) {
  std::ifstream file(
      absl::StrCat(root, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"));
  uint64_t pages = 0;
  file >> pages;
  return pages * kHugePageBytes;
}

absl::Status CheckCgroupLimit(uint64_t region_bytes, const CgroupLimit& limit) {
  if (region_bytes > limit.bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("--memory asks for ", region_bytes,
                     " bytes, and the kernel ends this process when it has ", limit.bytes, " (",
                     limit.file, "): raise the limit of the container or service, or ask for ",
                     "less; the server needs some more beside --memory"));
  }
  const uint64_t rest = kRestBytes + region_bytes / kRestShare;
  if (limit.bytes - region_bytes < rest) {
    LOG(WARNING) << "--memory leaves " << limit.bytes - region_bytes << " bytes of the "
                 << limit.bytes << " that " << limit.file << " allows. The kernel ends the server "
                 << "when it needs more, with many connections for example: leave " << rest;
  }
  return absl::OkStatus();
}

}  // namespace gannet
