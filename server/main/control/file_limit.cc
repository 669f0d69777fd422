#include "server/main/control/file_limit.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "glog/logging.h"

namespace gannet {

void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) PLOG(WARNING) << "cannot raise RLIMIT_NOFILE";
}

// A descriptor gets the lowest free number. So once that is among the last ones, few are left.
bool HasDescriptorsForClients() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  const int fd = eventfd(0, EFD_CLOEXEC);
  if (fd < 0) return false;
  close(fd);
  return static_cast<rlim_t>(fd) + kReservedDescriptors < limit.rlim_cur;
}

}  // namespace gannet
