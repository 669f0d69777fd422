#ifndef GANNET_COMMON_PROGRAM_EXECUTE_AGAIN_H_
#define GANNET_COMMON_PROGRAM_EXECUTE_AGAIN_H_

#include "absl/status/status.h"

namespace gannet {

// Replaces this process by the same program with the same arguments, which begins anew: same
// process id, standard streams and environment, but for what WasExecutedAgain needs. Returns only
// on failure. REQUIRES: there are no other threads; the caller has torn down what must not end in
// the middle.
absl::Status ExecuteAgain(char** argv);
// Returns whether this process, or one that it replaced, had called ExecuteAgain.
bool WasExecutedAgain();

}  // namespace gannet

#endif  // GANNET_COMMON_PROGRAM_EXECUTE_AGAIN_H_
