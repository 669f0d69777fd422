#ifndef GANNET_SERVER_MAIN_CONTROL_CHECK_TIER_H_
#define GANNET_SERVER_MAIN_CONTROL_CHECK_TIER_H_

#include "absl/status/status.h"
#include "server/main/control/server_tier.h"

namespace gannet {

// Looks at the directory of a tier as a start would, and changes nothing. Prints what is there, as
// lines or as JSON. Returns why a start would be refused (ServerTier::Open), and does not print it.
// `keeps`: the server has a memory file.
absl::Status CheckTier(const TierOptions& options, bool keeps, bool json);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_CHECK_TIER_H_
