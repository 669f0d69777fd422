#ifndef GANNET_SERVER_CONTROL_STORE_IN_FILE_H_
#define GANNET_SERVER_CONTROL_STORE_IN_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/store.h"

namespace gannet {

// Store::Create, for a region that is the memory file `path`, or none if that is empty. Says in the
// log what was found there. The errors name the file.
absl::StatusOr<std::unique_ptr<Store>> CreateStoreIn(const std::string& path,
                                                     const Store::Options& options);

// Returns what was taken over, in a line.
std::string Describe(const TakenOver& taken_over);

}  // namespace gannet

#endif  // GANNET_SERVER_CONTROL_STORE_IN_FILE_H_
