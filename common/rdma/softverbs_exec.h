#ifndef GANNET_COMMON_RDMA_SOFTVERBS_EXEC_H_
#define GANNET_COMMON_RDMA_SOFTVERBS_EXEC_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

// How our programs get onto softverbs, the user-space device: they execute themselves again with
// LD_LIBRARY_PATH set to its drop-in libibverbs.so.1 and librdmacm.so.1. The client library never
// does this.

// Returns whether softverbs is the verbs library of this process.
bool RunningOnSoftverbs();

// Returns the directory of the drop-in libraries, relative to the executable `program`:
// ../lib/softverbs in the build tree, ../<libdir>/gannet/softverbs if installed.
// FailedPrecondition: neither exists.
absl::StatusOr<std::string> FindSoftverbsDirectory(const std::string& program);

// Replaces this process by the same program with the same arguments, on softverbs. Returns only on
// failure: there are no drop-in libraries, or this already is the new process, and it still has
// another verbs library or cannot open the device. REQUIRES: !RunningOnSoftverbs().
absl::Status ReexecOntoSoftverbs(char** argv);

// Undoes what ReexecOntoSoftverbs changed in the environment, so that child processes are not
// affected. Call it once on softverbs.
void RestoreEnvironmentAfterReexec();

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_SOFTVERBS_EXEC_H_
