#include "server/control/file_limit.h"

#include <sys/resource.h>

#include "glog/logging.h"

namespace gannet {

void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) PLOG(WARNING) << "cannot raise RLIMIT_NOFILE";
}

}  // namespace gannet
