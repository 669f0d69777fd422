// Client: the writes that make an item's new content from the old one, and the
// removal of all items.

#include <utility>
#include <vector>

#include "client/api/change_requests.h"
#include "client/api/client_state.h"

namespace gannet {

using Milliseconds = Client::Milliseconds;

absl::StatusOr<uint64_t> Client::Add(std::string_view key, std::string_view value,
                                     PutOptions options, std::optional<Milliseconds> deadline) {
  options.only_if_absent = true;
  return Put(key, value, options, deadline);
}

absl::StatusOr<uint64_t> Client::Replace(std::string_view key, std::string_view value,
                                         PutOptions options, std::optional<Milliseconds> deadline) {
  options.only_if_present = true;
  return Put(key, value, options, deadline);
}

absl::StatusOr<uint64_t> Client::Append(std::string_view key, std::string_view piece,
                                        const ChangeOptions& options,
                                        std::optional<Milliseconds> deadline) {
  return state_->Version(AppendRequest(OpType::kAppend, key, piece, options), deadline);
}

absl::StatusOr<uint64_t> Client::Prepend(std::string_view key, std::string_view piece,
                                         const ChangeOptions& options,
                                         std::optional<Milliseconds> deadline) {
  return state_->Version(AppendRequest(OpType::kPrepend, key, piece, options), deadline);
}

absl::StatusOr<int64_t> Client::Incr(std::string_view key, int64_t delta,
                                     const IncrOptions& options,
                                     std::optional<Milliseconds> deadline) {
  return state_->Number(IncrRequest(key, delta, options), deadline);
}

absl::StatusOr<int64_t> Client::Decr(std::string_view key, int64_t delta,
                                     const IncrOptions& options,
                                     std::optional<Milliseconds> deadline) {
  return state_->Number(DecrRequest(key, delta, options), deadline);
}

absl::StatusOr<bool> Client::Touch(std::string_view key, Milliseconds ttl,
                                   const TouchOptions& options,
                                   std::optional<Milliseconds> deadline) {
  bool found = false;
  absl::Status status =
      state_->Run(TouchRequest(OpType::kTouch, key, ttl, options), state_->TimeoutNs(deadline),
                  [&](const Op& op) { found = op.done.found; });
  if (!status.ok()) return status;
  return found;
}

absl::StatusOr<std::optional<Value>> Client::GetAndTouch(std::string_view key, Milliseconds ttl,
                                                         std::optional<Milliseconds> deadline) {
  std::optional<Value> value;
  absl::Status status = state_->Run(TouchRequest(OpType::kGetAndTouch, key, ttl, {}),
                                    state_->TimeoutNs(deadline), [&](const Op& op) {
                                      if (op.done.found) value = MakeValue(op);
                                    });
  if (!status.ok()) return status;
  return value;
}

absl::StatusOr<uint64_t> Client::Flush(std::optional<Milliseconds> deadline) {
  uint64_t removed = 0;
  const auto answers =
      state_->AskEach<ServerPing>(OpType::kFlush, state_->TimeoutNs(deadline),
                                  [&](ServerPing& answer, const Op& op, absl::Status status) {
                                    answer.status = std::move(status);
                                    removed += static_cast<uint64_t>(op.done.counted);
                                  });
  for (const ServerPing& answer : answers) {
    if (!answer.status.ok()) return answer.status;
  }
  return removed;
}

}  // namespace gannet
