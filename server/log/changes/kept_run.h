#ifndef GANNET_SERVER_LOG_CHANGES_KEPT_RUN_H_
#define GANNET_SERVER_LOG_CHANGES_KEPT_RUN_H_

#include <cstdint>

namespace gannet {

// Which items an earlier process of a group's member left on its disk (docs/group-recovery.md, "A
// whole group that restarts").
struct KeptRun {
  uint64_t process = 0;  // incarnation of the process that was in sync with them
  uint64_t history = 0;
  uint64_t lsn = 0;     // everything up to there is on the disk, at least
  bool always = false;  // kept with --sync=always
  // The last epoch in which that process took clients as primary with --sync=always; 0: in none.
  // Everything that was acknowledged in it is on the disk.
  uint64_t opened = 0;

  friend bool operator==(const KeptRun&, const KeptRun&) = default;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_CHANGES_KEPT_RUN_H_
