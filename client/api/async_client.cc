#include <gannet/async_client.h>

#include <cstring>
#include <utility>

#include "client/api/fork_guard.h"
#include "client/api/requests.h"
#include "client/engine/engine.h"

namespace gannet {
namespace {

absl::Status NoRoomStatus() {
  return absl::ResourceExhaustedError("Options::depth operations are in flight; poll first");
}

}  // namespace

// The caller's side of each operation in flight lies beside the engine's slot.
class AsyncClient::State {
 public:
  State(std::unique_ptr<Engine> e, const Options& options)
      : engine(std::move(e)), targets(2 * options.depth), timeout_ns(TimeoutNs(options.deadline)) {}

  struct Target {
    std::span<std::byte> out;
    ServerStats* stats = nullptr;
  };

  absl::Status Begin(absl::StatusOr<OpRequest> request, const Target& target, uint64_t user_data);
  absl::Status BeginGet(std::string_view key, std::span<std::byte> out, uint64_t user_data);
  void Complete(uint32_t i, Completion* completion);

  std::unique_ptr<Engine> engine;
  std::vector<Target> targets;
  int64_t timeout_ns;
  const ForkGuard fork_guard;
};

absl::Status AsyncClient::State::Begin(absl::StatusOr<OpRequest> request, const Target& target,
                                       uint64_t user_data) {
  if (fork_guard.forked()) return ForkGuard::ForkedStatus();
  if (!request.ok()) return request.status();
  request->timeout_ns = timeout_ns;
  request->user_data = user_data;
  const uint32_t i = engine->Begin(*request);
  if (i == kNoOp) return NoRoomStatus();
  targets[i] = target;
  return absl::OkStatus();
}

// The hot path: nothing of a request is made that a GET does not need.
inline absl::Status AsyncClient::State::BeginGet(std::string_view key, std::span<std::byte> out,
                                                 uint64_t user_data) {
  if (fork_guard.forked()) return ForkGuard::ForkedStatus();
  if (!KeyFits(key)) return KeyError(key);
  const uint32_t i = engine->BeginGet(key, timeout_ns, user_data);
  if (i == kNoOp) return NoRoomStatus();
  targets[i].out = out;
  return absl::OkStatus();
}

inline void AsyncClient::State::Complete(uint32_t i, Completion* completion) {
  const Op& op = engine->op(i);
  const Target& target = targets[i];
  *completion = op.done;
  completion->user_data = op.request.user_data;
  completion->type = op.request.type;
  completion->code = CodeOf(op.outcome);
  completion->lock_word = op.word.word();
  if (op.request.type == OpType::kStats && op.outcome == Outcome::kOk) [[unlikely]] {
    *target.stats = StatsOf(*engine, op);
  } else if (!op.value.empty() && !target.out.empty()) {
    std::memcpy(target.out.data(), op.value.data(), std::min(op.value.size(), target.out.size()));
  }
  engine->Release(i);
}

absl::StatusOr<std::unique_ptr<AsyncClient>> AsyncClient::Connect(
    std::vector<std::string> endpoints, Options options) {
  auto engine = ConnectEngine({.endpoints = std::move(endpoints),
                               .options = options,
                               .queue_pairs_max = ClientSession::kQueuePairsMax});
  if (!engine.ok()) return engine.status();
  return std::unique_ptr<AsyncClient>(
      new AsyncClient(std::make_unique<State>(*std::move(engine), options)));
}

AsyncClient::AsyncClient(std::unique_ptr<State> state) : state_(std::move(state)) {}

AsyncClient::~AsyncClient() {
  // A child of fork() must not touch the parent's connections.
  if (state_->fork_guard.forked()) static_cast<void>(state_.release());
}

absl::Status AsyncClient::Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) {
  return state_->BeginGet(key, out, user_data);
}

absl::Status AsyncClient::Put(std::string_view key, std::string_view value,
                              const PutOptions& options, uint64_t user_data) {
  return state_->Begin(PutRequest(*state_->engine, key, value, options), {}, user_data);
}

absl::Status AsyncClient::Delete(std::string_view key, const DeleteOptions& options,
                                 uint64_t user_data) {
  return state_->Begin(DeleteRequest(*state_->engine, key, options), {}, user_data);
}

absl::Status AsyncClient::TryLock(std::string_view key, uint64_t user_data) {
  return state_->Begin(KeyRequest(*state_->engine, OpType::kLock, key), {}, user_data);
}

absl::Status AsyncClient::LockAndGet(std::string_view key, std::span<std::byte> out,
                                     uint64_t user_data) {
  return state_->Begin(KeyRequest(*state_->engine, OpType::kLockAndGet, key), {.out = out},
                       user_data);
}

absl::Status AsyncClient::Unlock(const Lock& lock, uint64_t user_data) {
  return state_->Begin(UnlockRequest(*state_->engine, lock), {}, user_data);
}

absl::Status AsyncClient::Ping(uint32_t server, uint64_t user_data) {
  return state_->Begin(ServerRequest(*state_->engine, OpType::kPing, server), {}, user_data);
}

absl::Status AsyncClient::Stats(uint32_t server, ServerStats* out, uint64_t user_data) {
  return state_->Begin(ServerRequest(*state_->engine, OpType::kStats, server), {.stats = out},
                       user_data);
}

size_t AsyncClient::Poll(std::span<Completion> out) {
  if (state_->fork_guard.forked()) return 0;
  Engine& engine = *state_->engine;
  engine.Poll(engine.clock().MonotonicNs());
  size_t n = 0;
  while (n < out.size()) {
    const uint32_t i = engine.NextFinished();
    if (i == kNoOp) break;
    state_->Complete(i, &out[n++]);
  }
  return n;
}

void AsyncClient::set_deadline(std::chrono::milliseconds deadline) {
  state_->timeout_ns = TimeoutNs(deadline);
}

uint32_t AsyncClient::in_flight() const { return state_->engine->alive(); }

uint32_t AsyncClient::ServerOf(std::string_view key) const { return state_->engine->ServerOf(key); }

std::vector<ServerInfo> AsyncClient::Info() const { return state_->engine->Info(); }

}  // namespace gannet
