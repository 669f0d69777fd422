#ifndef GANNET_SERVER_MAIN_DISK_RUN_DIRECTORIES_H_
#define GANNET_SERVER_MAIN_DISK_RUN_DIRECTORIES_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/log/journal/files.h"

namespace gannet {

// The directory of a group's member (docs/durability-formats.md, "The directory of a member"). Each
// run of its process is a member of its own, which begins empty. So each has a directory of its own
// there: run-000001, run-000002 and so on, which is like that of a server alone. A run that has a
// snapshot is whole: all items of the group were in it once. The newest whole one is kept until the
// next run is whole, too.
//
// Thread safety: one thread at a time.
class RunDirectories {
 public:
  // Locks the directory, makes one for this run, and removes what earlier runs left that are not
  // whole, or older than a whole one. FailedPrecondition: as OpenDirectory; or there is something
  // else in it.
  static absl::StatusOr<std::unique_ptr<RunDirectories>> Open(const std::string& path);

  Files* own() const { return own_.get(); }
  // Returns nullptr if no earlier run was whole.
  Files* former() const { return former_.get(); }
  // This run is whole. REQUIRES: former() is not used any more.
  absl::Status RemoveFormer();

 private:
  RunDirectories() = default;

  std::unique_ptr<Files> directory_;
  std::unique_ptr<Files> own_;
  std::unique_ptr<Files> former_;
};

// Returns the path of the newest whole run, or `path` itself if it is no directory of a member.
std::string NewestRunIn(const std::string& path);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_RUN_DIRECTORIES_H_
