#ifndef GANNET_SERVER_MAIN_CONTROL_FIRST_VERSION_H_
#define GANNET_SERVER_MAIN_CONTROL_FIRST_VERSION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/base/clocks.h"

namespace gannet {

// The first version of a run that starts now (common/layout/version.h). FailedPrecondition: the
// clock is not set, and versions of an earlier run could come again; the text says what to do.
absl::StatusOr<uint64_t> FirstVersionByClock(WallTime wall);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_FIRST_VERSION_H_
