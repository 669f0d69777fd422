// The AsyncClient: one Engine that its caller polls. Each call begins an operation; what has ended
// comes out of Poll and Wait, first what found no room in an earlier `out`. Wait polls as long as
// that pays, and then sleeps on the engine's descriptor. Get makes no OpRequest, as it is the hot
// way.

#include <gannet/async_client.h>
#include <sched.h>

#include <cstring>
#include <utility>

#include "client/api/change_requests.h"
#include "client/api/connect_engine.h"
#include "client/api/fork_guard.h"
#include "client/api/make_requests.h"
#include "client/engine/engine.h"
#include "client/engine/wake_fd.h"
#include "client/session/memory_domains.h"
#include "common/base/client_clock.h"

namespace gannet {
namespace {

// How many of the READs that share a doorbell share a completion. With fewer, the caller could go
// on with the first GETs of a chain while the last are still being READ. But with 16 GETs in flight
// or more, of two READs each, at least eight GETs should share a completion. The NIC has several
// chains to work on all the same. Most NICs allow 16 READs in flight on a connection, and then a
// doorbell is for 16 READs too (SessionSends::OpenReads). With 64 GETs in flight or more there are
// several chains on any NIC.
constexpr uint32_t kSignalEvery = 32;

// If an answer takes longer than this, it waited for a core, here or at the server.
constexpr int64_t kLongWaitNs = 3 * kNsPerMs;

absl::Status NoRoomStatus() {
  return absl::ResourceExhaustedError("Options::depth operations are in flight; poll first");
}

}  // namespace

class AsyncClient::State {
 public:
  State(std::unique_ptr<Engine> e, std::unique_ptr<WakeFd> w, const Options& options)
      : engine(std::move(e)),
        wake(std::move(w)),
        polls_only(options.wait == gannet::Wait::kPoll),
        stages(MakeWaitStages(options)),
        stats_of(2 * options.depth),
        timeout_ns(TimeoutNs(options.deadline)) {}

  absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data);
  absl::Status Begin(absl::StatusOr<OpRequest> request, uint64_t user_data,
                     std::span<std::byte> out = {}, ServerStats* stats = nullptr);
  // Fills in completions that the engine has not reported. Returns their number.
  size_t TakeFinished(std::span<Completion> completions);
  void Complete(uint32_t i, Completion* completion);
  size_t Poll(std::span<Completion> out);
  // Goes on with a wait after Poll found nothing.
  size_t GoOnWaiting(std::span<Completion> out, int64_t deadline_ns);
  void WaitALittle(int64_t now_ns, int64_t deadline_ns);
  void Sleep(int64_t now_ns, int64_t deadline_ns);

  const std::unique_ptr<Engine> engine;
  const std::unique_ptr<WakeFd> wake;
  const bool polls_only;
  WaitStages stages;
  std::vector<ServerStats*> stats_of;  // where the answer of a Stats goes, by operation
  int64_t timeout_ns;
  const ForkGuard fork_guard;
};

absl::Status AsyncClient::State::Get(std::string_view key, std::span<std::byte> out,
                                     uint64_t user_data) {
  if (fork_guard.forked()) return ForkGuard::ForkedStatus();
  if (!KeyFits(key)) return KeyError(key);
  if (!engine->BeginGet(key, out, timeout_ns, user_data)) return NoRoomStatus();
  return absl::OkStatus();
}

absl::Status AsyncClient::State::Begin(absl::StatusOr<OpRequest> request, uint64_t user_data,
                                       std::span<std::byte> out, ServerStats* stats) {
  if (fork_guard.forked()) return ForkGuard::ForkedStatus();
  if (!request.ok()) return request.status();
  request->timeout_ns = timeout_ns;
  request->user_data = user_data;
  request->out = out;
  const uint32_t i = engine->Begin(*request);
  if (i == kInvalidOp) return NoRoomStatus();
  stats_of[i] = stats;
  return absl::OkStatus();
}

// Not part of Poll, as most operations are reported there.
[[gnu::noinline]] size_t AsyncClient::State::TakeFinished(std::span<Completion> completions) {
  size_t n = 0;
  while (n < completions.size()) {
    const uint32_t i = engine->NextFinished();
    if (i == kInvalidOp) break;
    Complete(i, &completions[n++]);
  }
  return n;
}

void AsyncClient::State::Complete(uint32_t i, Completion* completion) {
  const Op& op = engine->op(i);
  const std::span<std::byte> out = op.request.out;
  *completion = op.done;
  completion->user_data = op.request.user_data;
  completion->type = op.request.type;
  completion->code = ToStatusCode(op.outcome);
  completion->index_full = op.outcome == Outcome::kIndexFull;
  if (TakesLock(op.request.type)) completion->lock_word = op.lock.word.word();
  if (op.request.type == OpType::kStats && op.outcome == Outcome::kOk) {
    *stats_of[i] = ParseStats(engine->servers().session(op.request.server).endpoint(), op);
  } else if (!op.value.empty() && !out.empty() && !IsUnchanged(op)) {
    std::memcpy(out.data(), op.value.data(), std::min(op.value.size(), out.size()));
  }
  engine->Release(i);
}

// Operations that found no room in the `out` of an earlier call come first.
inline size_t AsyncClient::State::Poll(std::span<Completion> out) {
  if (fork_guard.forked()) return 0;
  size_t n = engine->HasFinished() ? TakeFinished(out) : 0;
  n += engine->Poll(engine->clock().MonotonicNs(), out.subspan(n));
  return engine->HasFinished() ? n + TakeFinished(out.subspan(n)) : n;
}

size_t AsyncClient::State::GoOnWaiting(std::span<Completion> out, int64_t deadline_ns) {
  for (;;) {
    // READs that complete while they are posted need no wait.
    const bool progressed = ServerEvents(engine->servers()).progressed();
    const int64_t now_ns = engine->clock().MonotonicNs();
    if (now_ns >= deadline_ns) return 0;
    if (!progressed) WaitALittle(now_ns, deadline_ns);
    const size_t n = Poll(out);
    if (n == 0) continue;
    if (stages.waiting()) stages.Came(engine->clock().MonotonicNs());
    return n;
  }
}

// With nothing in flight there is no answer to poll for.
void AsyncClient::State::WaitALittle(int64_t now_ns, int64_t deadline_ns) {
  if (polls_only) return;
  const bool idle = engine->alive() == 0;
  if (idle) stages.Cancel();
  switch (idle ? WaitStages::Stage::kSleep : stages.Next(now_ns)) {
    case WaitStages::Stage::kPoll:
      return;
    case WaitStages::Stage::kYield:
      sched_yield();
      return;
    case WaitStages::Stage::kSleep:
      if (!wake->Arm(*engine, now_ns)) Sleep(now_ns, deadline_ns);
      return;
  }
}

// After a long wait, the server and many others want the cores. This lets them run once more, so
// that more answers are there at once: each turn on a core costs the filling of its caches.
void AsyncClient::State::Sleep(int64_t now_ns, int64_t deadline_ns) {
  WakeFd::Sleep(wake->fd(), deadline_ns - now_ns);
  if (engine->alive() > 1 && engine->clock().MonotonicNs() - now_ns > kLongWaitNs) sched_yield();
}

absl::StatusOr<std::unique_ptr<AsyncClient>> AsyncClient::Connect(
    std::vector<std::string> endpoints, Options options) {
  auto engine = ConnectEngine({.endpoints = std::move(endpoints),
                               .options = options,
                               .connections_max = ClientSession::kConnectionsMax,
                               .signal_every = kSignalEvery,
                               .clock = ClientClock::Real()});
  if (!engine.ok()) return engine.status();
  auto wake = WakeFd::Create();
  if (!wake.ok()) return wake.status();
  return std::unique_ptr<AsyncClient>(
      new AsyncClient(std::make_unique<State>(*std::move(engine), *std::move(wake), options)));
}

AsyncClient::AsyncClient(std::unique_ptr<State> state) : state_(std::move(state)) {}

AsyncClient::~AsyncClient() {
  // A child of fork() must not touch the parent's connections.
  if (state_->fork_guard.forked()) static_cast<void>(state_.release());
}

// Hot: makes no OpRequest, because a GET does not need its other fields. In the best case it calls
// nothing.
absl::Status AsyncClient::Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) {
  State& state = *state_;
  Engine& engine = *state.engine;
  if (state.fork_guard.forked() || !engine.BeginsInline(key)) [[unlikely]]
    return state.Get(key, out, user_data);
  if (!engine.BeginGetInline(key, out, state.timeout_ns, user_data)) [[unlikely]]
    return NoRoomStatus();
  return absl::OkStatus();
}

absl::Status AsyncClient::Exists(std::string_view key, uint64_t user_data) {
  return state_->Begin(KeyRequest(OpType::kExists, key), user_data);
}

absl::Status AsyncClient::GetIfChanged(std::string_view key, uint64_t version,
                                       std::span<std::byte> out, uint64_t user_data) {
  return state_->Begin(IfChangedRequest(key, version), user_data, out);
}

absl::Status AsyncClient::Put(std::string_view key, std::string_view value,
                              const PutOptions& options, uint64_t user_data) {
  return state_->Begin(PutRequest(key, value, options), user_data);
}

absl::Status AsyncClient::GetInto(std::string_view key, std::span<const RegisteredSpan> into,
                                  uint64_t user_data) {
  State& state = *state_;
  if (state.fork_guard.forked()) return ForkGuard::ForkedStatus();
  if (!KeyFits(key)) return KeyError(key);
  if (absl::Status status = CheckSpans(*state.engine, into); !status.ok()) return status;
  if (!state.engine->BeginGetInto(key, into, state.timeout_ns, user_data)) return NoRoomStatus();
  return absl::OkStatus();
}

absl::Status AsyncClient::PutFrom(std::string_view key, std::span<const RegisteredSpan> from,
                                  const PutOptions& options, uint64_t user_data) {
  return state_->Begin(PutFromRequest(*state_->engine, key, from, options), user_data);
}

absl::StatusOr<RegisteredMemory> AsyncClient::Register(std::span<std::byte> memory,
                                                       const RegisterOptions& options) {
  const Engine& engine = *state_->engine;
  return MakeRegistered(engine.domains().Register(memory, options.remote_read));
}

absl::StatusOr<RegisteredMemory> AsyncClient::AllocateMemory(uint64_t bytes) {
  const Engine& engine = *state_->engine;
  return MakeRegistered(engine.domains().Allocate(bytes));
}

absl::StatusOr<RegisteredMemory> AsyncClient::RegisterDmabuf(int fd, uint64_t offset,
                                                             uint64_t bytes,
                                                             const RegisterOptions& options) {
  const Engine& engine = *state_->engine;
  return MakeRegistered(engine.domains().RegisterDmabuf(fd, offset, bytes, options.remote_read));
}

absl::Status AsyncClient::Delete(std::string_view key, const DeleteOptions& options,
                                 uint64_t user_data) {
  return state_->Begin(DeleteRequest(key, options), user_data);
}

absl::Status AsyncClient::Add(std::string_view key, std::string_view value, PutOptions options,
                              uint64_t user_data) {
  options.only_if_absent = true;
  return Put(key, value, options, user_data);
}

absl::Status AsyncClient::Replace(std::string_view key, std::string_view value, PutOptions options,
                                  uint64_t user_data) {
  options.only_if_present = true;
  return Put(key, value, options, user_data);
}

absl::Status AsyncClient::Append(std::string_view key, std::string_view piece,
                                 const ChangeOptions& options, uint64_t user_data) {
  return state_->Begin(AppendRequest(OpType::kAppend, key, piece, options), user_data);
}

absl::Status AsyncClient::Prepend(std::string_view key, std::string_view piece,
                                  const ChangeOptions& options, uint64_t user_data) {
  return state_->Begin(AppendRequest(OpType::kPrepend, key, piece, options), user_data);
}

absl::Status AsyncClient::Incr(std::string_view key, int64_t delta, const IncrOptions& options,
                               uint64_t user_data) {
  return state_->Begin(IncrRequest(key, delta, options), user_data);
}

absl::Status AsyncClient::Decr(std::string_view key, int64_t delta, const IncrOptions& options,
                               uint64_t user_data) {
  return state_->Begin(DecrRequest(key, delta, options), user_data);
}

absl::Status AsyncClient::Touch(std::string_view key, std::chrono::milliseconds ttl,
                                const TouchOptions& options, uint64_t user_data) {
  return state_->Begin(TouchRequest(OpType::kTouch, key, ttl, options), user_data);
}

absl::Status AsyncClient::GetAndTouch(std::string_view key, std::chrono::milliseconds ttl,
                                      std::span<std::byte> out, uint64_t user_data) {
  return state_->Begin(TouchRequest(OpType::kGetAndTouch, key, ttl, {}), user_data, out);
}

absl::Status AsyncClient::Flush(uint32_t server, uint64_t user_data) {
  return state_->Begin(ServerRequest(*state_->engine, OpType::kFlush, server), user_data);
}

absl::Status AsyncClient::TryLock(std::string_view key, uint64_t user_data,
                                  const LockOptions& options) {
  return state_->Begin(LockRequest(OpType::kLock, key, options), user_data);
}

absl::Status AsyncClient::LockAndGet(std::string_view key, std::span<std::byte> out,
                                     uint64_t user_data, const LockOptions& options) {
  return state_->Begin(LockRequest(OpType::kLockAndGet, key, options), user_data, out);
}

absl::Status AsyncClient::Extend(const Lock& lock, std::chrono::milliseconds lease,
                                 uint64_t user_data) {
  return state_->Begin(ExtendRequest(lock, lease), user_data);
}

absl::Status AsyncClient::Unlock(const Lock& lock, uint64_t user_data) {
  return state_->Begin(UnlockRequest(lock), user_data);
}

absl::Status AsyncClient::Ping(uint32_t server, uint64_t user_data) {
  return state_->Begin(ServerRequest(*state_->engine, OpType::kPing, server), user_data);
}

absl::Status AsyncClient::Stats(uint32_t server, ServerStats* out, uint64_t user_data) {
  return state_->Begin(ServerRequest(*state_->engine, OpType::kStats, server), user_data, {}, out);
}

size_t AsyncClient::Poll(std::span<Completion> out) { return state_->Poll(out); }

size_t AsyncClient::Wait(std::span<Completion> out, std::chrono::nanoseconds deadline) {
  State& state = *state_;
  const size_t n = state.Poll(out);
  if (n == 0 && !state.fork_guard.forked()) {
    const int64_t now_ns = state.engine->clock().MonotonicNs();
    const int64_t left_ns = std::clamp<int64_t>(deadline.count(), 0, INT64_MAX - now_ns);
    return state.GoOnWaiting(out, now_ns + left_ns);
  }
  if (state.stages.waiting()) state.stages.Came(state.engine->clock().MonotonicNs());
  return n;
}

int AsyncClient::fd() const { return state_->wake->fd(); }

bool AsyncClient::Arm() {
  if (state_->fork_guard.forked()) return false;
  return state_->wake->Arm(*state_->engine, state_->engine->clock().MonotonicNs());
}

void AsyncClient::set_deadline(std::chrono::milliseconds deadline) {
  state_->timeout_ns = TimeoutNs(deadline);
}

uint32_t AsyncClient::in_flight() const { return state_->engine->alive(); }

uint32_t AsyncClient::ServerOf(std::string_view key) const {
  return state_->engine->servers().ServerOf(key);
}

uint32_t AsyncClient::server_count() const { return state_->engine->servers().count(); }

std::vector<ServerInfo> AsyncClient::Info() const { return state_->engine->servers().Info(); }

}  // namespace gannet
