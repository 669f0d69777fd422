#ifndef GANNET_CLIENT_API_CHANGE_REQUESTS_H_
#define GANNET_CLIENT_API_CHANGE_REQUESTS_H_

#include <gannet/types.h>

#include <chrono>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/engine/engine.h"

namespace gannet {

// Requests for the writes that make an item's new content from the old one. requests.h has those
// for the others. All return InvalidArgument, with the reason, if the arguments are not valid.

// `type` is kAppend or kPrepend.
absl::StatusOr<OpRequest> AppendRequest(OpType type, std::string_view key, std::string_view piece,
                                        const ChangeOptions& options);
absl::StatusOr<OpRequest> IncrRequest(std::string_view key, int64_t delta,
                                      const IncrOptions& options);
absl::StatusOr<OpRequest> DecrRequest(std::string_view key, int64_t delta,
                                      const IncrOptions& options);
// `type` is kTouch or kGetAndTouch.
absl::StatusOr<OpRequest> TouchRequest(OpType type, std::string_view key,
                                       std::chrono::milliseconds ttl, const TouchOptions& options);

}  // namespace gannet

#endif  // GANNET_CLIENT_API_CHANGE_REQUESTS_H_
