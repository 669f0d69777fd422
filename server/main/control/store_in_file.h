#ifndef GANNET_SERVER_MAIN_CONTROL_STORE_IN_FILE_H_
#define GANNET_SERVER_MAIN_CONTROL_STORE_IN_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/memory/store/store.h"

namespace gannet {

// Store::Create, for a region that is the memory file `path`, or for one without a file if `path`
// is empty. Logs what was found there. The errors name the file.
absl::StatusOr<std::unique_ptr<Store>> CreateStoreIn(const std::string& path,
                                                     const Store::Options& options);

// Describes in a line what was taken over.
std::string Describe(const TakenOver& taken_over);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_STORE_IN_FILE_H_
