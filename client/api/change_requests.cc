#include "client/api/change_requests.h"

#include <gannet/client.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "client/api/make_requests.h"

namespace gannet {
namespace {

// A piece travels in the message, whatever the key's length.
static_assert(Client::kPieceBytesMax == EagerValueBytesMax(kKeyBytesMax));

// Adds what Append's options and Incr's have in common.
template <class AnyOptions>
absl::StatusOr<OpRequest> WithOptions(OpRequest request, const AnyOptions& options) {
  request.flags = options.flags;
  request.only_if_present = options.only_if_present;
  absl::Status status = AddTtl(options.ttl, &request);
  if (status.ok()) status = AddConditions(options.only_if_version, options.lock, &request);
  if (!status.ok()) return status;
  return request;
}

}  // namespace

absl::StatusOr<OpRequest> AppendRequest(OpType type, std::string_view key, std::string_view piece,
                                        const ChangeOptions& options) {
  absl::StatusOr<OpRequest> request = KeyRequest(type, key);
  if (!request.ok()) return request;
  if (piece.size() > Client::kPieceBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("piece of ", piece.size(), " bytes, at most ",
                                                   Client::kPieceBytesMax, " are possible"));
  }
  request->value = piece;
  return WithOptions(*request, options);
}

absl::StatusOr<OpRequest> IncrRequest(std::string_view key, int64_t delta,
                                      const IncrOptions& options) {
  absl::StatusOr<OpRequest> request = KeyRequest(OpType::kIncr, key);
  if (!request.ok()) return request;
  request->counter = {.delta = delta, .initial = options.initial};
  return WithOptions(*request, options);
}

absl::StatusOr<OpRequest> DecrRequest(std::string_view key, int64_t delta,
                                      const IncrOptions& options) {
  if (delta == std::numeric_limits<int64_t>::min()) {
    return absl::InvalidArgumentError("this number cannot be subtracted: it has no opposite");
  }
  return IncrRequest(key, -delta, options);
}

absl::StatusOr<OpRequest> TouchRequest(OpType type, std::string_view key,
                                       std::chrono::milliseconds ttl, const TouchOptions& options) {
  absl::StatusOr<OpRequest> request = KeyRequest(type, key);
  if (!request.ok()) return request;
  absl::Status status = AddTtl(ttl, &*request);
  if (status.ok()) status = AddConditions(options.only_if_version, options.lock, &*request);
  if (!status.ok()) return status;
  return request;
}

}  // namespace gannet
