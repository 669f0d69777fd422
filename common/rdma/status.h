#ifndef GANNET_COMMON_RDMA_STATUS_H_
#define GANNET_COMMON_RDMA_STATUS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace gannet {

// Turn the three error conventions of verbs into an absl::Status whose text says what failed, why,
// and what to do about it. The code carries the retry class: Unavailable = try again later,
// ResourceExhausted = a limit is reached, FailedPrecondition = this machine has no (working)
// device, PermissionDenied, InvalidArgument; the rest is Internal.

// For functions that return an errno value (most of ibv_*). Also takes the negative values of siw.
// 0 is OK.
absl::Status ErrnoStatus(int error, std::string_view what);

// For functions that return NULL or -1 and set errno (ibv_reg_mr, ibv_create_*, rdma_*). Call it
// before anything else can change errno. Never returns OK.
absl::Status LastErrnoStatus(std::string_view what);

// As LastErrnoStatus, for calls that pin memory: for ENOMEM, the text names RLIMIT_MEMLOCK, its
// value, and `ulimit -l`.
absl::Status LastErrnoStatusOfPinning(std::string_view what);

// For work completions. OK for IBV_WC_SUCCESS.
absl::Status CompletionStatus(const ibv_wc& completion, std::string_view what);

// Returns why a connection failed and what to do, for RDMA-CM events that end an attempt. Their
// status is a negative errno value or a device-specific number. `softverbs`: this process runs on
// softverbs.
std::string FailureText(rdma_cm_event_type event, int status, bool softverbs);

// Returns the error of a program that finds no device to run on.
absl::Status NoDeviceStatus();

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_STATUS_H_
