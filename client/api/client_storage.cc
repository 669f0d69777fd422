// Client: where servers keep their items, and snapshots.

#include <gannet/client.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "client/api/client_state.h"
#include "client/api/make_requests.h"
#include "common/protocol/storage.h"

namespace gannet {
namespace {

// The first pause before asking again whether a snapshot is whole. Each pause is twice the one
// before.
constexpr std::chrono::milliseconds kAskAgainMin{1};
constexpr std::chrono::milliseconds kAskAgainMax{50};

const char* SyncName(uint64_t disk_sync) {
  constexpr const char* kNames[] = {"", "none", "interval", "always"};
  return disk_sync < std::size(kNames) ? kNames[disk_sync] : "unknown";
}

struct StorageAnswer {
  StorageReply reply{};  // fields that an older server does not send stay 0
  uint64_t number = 0;   // of the snapshot that was asked for
};

StorageAnswer AnswerOf(const Op& op) {
  StorageAnswer answer{.number = op.rpc.snapshot};
  std::memcpy(&answer.reply, op.value.data(), std::min(op.value.size(), sizeof(answer.reply)));
  return answer;
}

ServerStorage StorageOf(const std::string& endpoint, const StorageReply& reply) {
  ServerStorage storage;
  storage.endpoint = endpoint;
  storage.sync = SyncName(reply.disk_sync);
  storage.directory = TextOf(reply.directory);
  storage.memory_file = TextOf(reply.memory_file);
  storage.behind_bytes = reply.disk_behind_bytes;
  storage.behind = std::chrono::milliseconds(reply.disk_behind_ms);
  if (reply.bytes == 0) return storage;
  storage.snapshot = {.position = reply.position,
                      .items = reply.items,
                      .bytes = reply.bytes,
                      .completed = std::chrono::milliseconds(reply.completed_ms)};
  return storage;
}

}  // namespace

absl::StatusOr<ServerStorage> Client::Storage(uint32_t server,
                                              std::optional<Milliseconds> deadline) {
  const Engine& engine = state_->driver.engine();
  StorageAnswer answer;
  absl::Status status =
      state_->Run(ServerRequest(engine, OpType::kStorage, server), state_->TimeoutNs(deadline),
                  [&](const Op& op) { answer = AnswerOf(op); });
  if (!status.ok()) return status;
  return StorageOf(state_->driver.InfoOf(server).endpoint, answer.reply);
}

absl::StatusOr<ServerStorage> Client::Snapshot(uint32_t server,
                                               std::optional<Milliseconds> deadline) {
  const Engine& engine = state_->driver.engine();
  const int64_t deadline_ns = engine.clock().MonotonicNs() + state_->TimeoutNs(deadline);
  uint64_t number = 0;  // of the snapshot
  uint64_t asked = 0;   // the incarnation of the server that was asked
  for (std::chrono::milliseconds rest = kAskAgainMin;; rest = std::min(2 * rest, kAskAgainMax)) {
    absl::StatusOr<OpRequest> request = ServerRequest(engine, OpType::kStorage, server);
    if (request.ok()) request->begin_snapshot = number == 0;
    const int64_t left_ns = std::max<int64_t>(deadline_ns - engine.clock().MonotonicNs(), 0);
    StorageAnswer answer;
    absl::Status status =
        state_->Run(std::move(request), left_ns, [&](const Op& op) { answer = AnswerOf(op); });
    if (!status.ok()) return status;
    const ServerInfo info = state_->driver.InfoOf(server);
    const std::string& endpoint = info.endpoint;
    if (answer.reply.disk_sync == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(endpoint,
                       ": the server writes no snapshots, because it keeps no items on a "
                       "disk: start it with --data=DIR"));
    }
    const uint64_t incarnation = info.incarnation;
    if (number == 0) {
      number = answer.number;
      asked = incarnation;
    }
    if (incarnation != asked) {
      return absl::UnavailableError(absl::StrCat(endpoint, ": the server was started again"));
    }
    if (answer.reply.whole >= number) return StorageOf(endpoint, answer.reply);
    if (answer.reply.ended >= number) {
      return absl::AbortedError(
          absl::StrCat(endpoint, ": the snapshot was given up: ", TextOf(answer.reply.why_not)));
    }
    std::this_thread::sleep_for(rest);
  }
}

}  // namespace gannet
