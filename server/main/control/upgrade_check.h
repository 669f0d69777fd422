#ifndef GANNET_SERVER_MAIN_CONTROL_UPGRADE_CHECK_H_
#define GANNET_SERVER_MAIN_CONTROL_UPGRADE_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace gannet {

// Says whether this version of kvserver can take over what another one keeps, before that one is
// stopped. Both look only at headers, take no lock and change nothing, so a server may go on using
// the file or directory meanwhile. Whether its items are whole is for --check, later.

// Prints which versions the parts of a memory file or of a --data directory have and which ones
// this kvserver takes, as lines or as JSON. Returns OK if it takes all of them.
// FailedPrecondition: it does not, and the text says why. NotFound: there is no such file.
absl::Status UpgradeCheck(const std::string& path, bool json);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_UPGRADE_CHECK_H_
