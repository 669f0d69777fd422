// Client: the writes that make an item's new content from the old one, and the
// removal of all items.

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "client/api/change_requests.h"
#include "client/api/client_state.h"

namespace gannet {

using Milliseconds = Client::Milliseconds;

namespace {

// Between two tries, while partitions move.
constexpr int64_t kFlushPauseFirstNs = 5 * kNsPerMs;
constexpr int64_t kFlushPauseMaxNs = 100 * kNsPerMs;

}  // namespace

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

// What moves from a group that is not flushed yet to one that is would stay. So all groups are
// flushed by one map, or all are flushed again.
absl::StatusOr<uint64_t> Client::Flush(std::optional<Milliseconds> deadline) {
  const ClientClock& clock = state_->driver.engine().clock();
  const int64_t deadline_ns = clock.MonotonicNs() + state_->TimeoutNs(deadline);
  const auto left_ns = [&] { return std::max<int64_t>(deadline_ns - clock.MonotonicNs(), 0); };
  uint64_t removed = 0;
  for (int64_t pause_ns = kFlushPauseFirstNs;;
       pause_ns = std::min(2 * pause_ns, kFlushPauseMaxNs)) {
    std::set<uint64_t> maps;
    absl::Status moved;
    const auto flushed = state_->AskEach<ServerPing>(
        OpType::kFlush, left_ns(), [&](ServerPing& answer, const Op& op, absl::Status status) {
          removed += static_cast<uint64_t>(op.done.counted);
          maps.insert(op.rpc.flush_map);
          answer.status = std::move(status);
        });
    for (const ServerPing& answer : flushed) {
      if (answer.status.ok()) continue;
      if (!absl::IsAborted(answer.status)) return answer.status;
      moved = answer.status;
    }
    if (moved.ok() && maps.size() <= 1) return removed;
    if (left_ns() <= pause_ns) {
      return absl::AbortedError("partitions move between groups, and what was in them may be left");
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(pause_ns));
  }
}

}  // namespace gannet
