#ifndef GANNET_COMMON_BASE_FILE_RIGHTS_H_
#define GANNET_COMMON_BASE_FILE_RIGHTS_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gannet {

// Who a process is for the file system.
struct ProcessIds {
  uid_t user = 0;
  std::vector<gid_t> groups;

  static ProcessIds Own();
};

// The rules are PostgreSQL's: they hold for what an administrator, a package and Kubernetes make.
// `about` is of stat, `path` for the texts, which say what to do.

// Returns OK if a file may hold a secret of this process: keys, a password. It is an ordinary file,
// and either ours, with no right for anybody else; or root's, whose group is ours and may only read
// it, as a Secret in a pod with fsGroup. FailedPrecondition otherwise.
absl::Status CheckSecretFile(const std::string& path, const struct stat& about,
                             const ProcessIds& ids);

// Returns OK if a directory may hold the items of this process: it is ours, and nobody else may
// write to it. So a volume that its group may write is refused, and the text names a directory in
// it that may be given instead. FailedPrecondition otherwise.
absl::Status CheckDataDirectory(const std::string& path, const struct stat& about,
                                const ProcessIds& ids);

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_FILE_RIGHTS_H_
