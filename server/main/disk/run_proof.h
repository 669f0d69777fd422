#ifndef GANNET_SERVER_MAIN_DISK_RUN_PROOF_H_
#define GANNET_SERVER_MAIN_DISK_RUN_PROOF_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "server/log/changes/kept_run.h"
#include "server/log/journal/files.h"

namespace gannet {

// What a run of a group's member proves, beside its items (docs/group-recovery.md, "A whole group
// that restarts"). A file of its own, which is replaced as a whole. docs/durability-formats.md has
// its form.
struct RunProof {
  KeptRun kept;  // its lsn is 0 here: it changes all the time
  // The process that wants to begin the group again with this run, the history that it made, and
  // its epoch. They count once the register has that history. Zeros: nobody does.
  KeptRun claim;

  friend bool operator==(const RunProof&, const RunProof&) = default;
};

// Returns nullopt if there is none that can be read: a run of an earlier version has none.
std::optional<RunProof> ReadRunProof(Files* files);
// Returns when it survives a power cut.
absl::Status WriteRunProof(Files* files, const RunProof& proof);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_RUN_PROOF_H_
