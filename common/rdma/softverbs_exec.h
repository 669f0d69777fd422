#ifndef GANNET_COMMON_RDMA_SOFTVERBS_EXEC_H_
#define GANNET_COMMON_RDMA_SOFTVERBS_EXEC_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

// How our programs, and never the client library, get onto softverbs, the user-space device: they
// execute themselves again with LD_LIBRARY_PATH leading to its drop-in libibverbs.so.1 and
// librdmacm.so.1.

// softverbs is the verbs library of this process.
bool RunningOnSoftverbs();

// The directory of the drop-in libraries, found from where the executable `program` is: in the
// build tree ../lib/softverbs, installed ../<libdir>/gannet/softverbs. FailedPrecondition: neither
// is there.
absl::StatusOr<std::string> FindSoftverbsDirectory(const std::string& program);

// Replaces this process by the same program with the same arguments, on softverbs. Returns only on
// failure: no drop-in libraries, or this already is the new process and it still has another verbs
// library. REQUIRES: !RunningOnSoftverbs().
absl::Status ReexecOntoSoftverbs(char** argv);

// To be called once on softverbs: takes back what ReexecOntoSoftverbs changed in the environment,
// so that child processes are not affected.
void RestoreEnvironmentAfterReexec();

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_SOFTVERBS_EXEC_H_
