#include "client/engine/engine.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/engine/ordinary_get_inline.h"
#include "client/routing/endpoint.h"
#include "common/base/status_macros.h"
#include "common/rdma/device.h"
#include "common/rdma/softverbs_exec.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

absl::Status CheckDeviceOption(const std::string& device) {
  if (device == "soft") return RunningOnSoftverbs() ? absl::OkStatus() : NoDeviceStatus();
  if (device == "auto") return ListDevices().empty() ? NoDeviceStatus() : absl::OkStatus();
  return OpenDevice(device).status();
}

std::function<void(bool, const std::string&)> MakeSessionLog(const Options& options) {
  if (!options.log) return nullptr;
  return [log = options.log](bool error, const std::string& line) {
    log(error ? LogLevel::kWarning : LogLevel::kInfo, line);
  };
}

ClientSession::Options MakeSessionOptions(const Engine::Settings& settings, uint32_t server,
                                          const std::vector<SocketAddress>& addresses,
                                          std::shared_ptr<AuthFile> auth_file) {
  const Options& options = settings.options;
  return {.number = server,
          .endpoint = settings.endpoints[server],
          .addresses = addresses,
          .device = options.device,
          .ops = 2 * options.depth,
          .connections_max = settings.connections_max,
          .reads_wanted = options.depth,
          .connect_timeout_ns = TimeoutNs(options.connect_timeout),
          .reconnect = options.reconnect,
          .nic_locks = settings.nic_locks,
          .server_clock = settings.server_clocks,
          .signal_every = settings.signal_every,
          .clock = settings.clock,
          .domains = settings.domains,
          .auth_file = std::move(auth_file),
          .log = MakeSessionLog(options)};
}

KeyOrder::Kind OrderKind(const Op& op) {
  if (!IsWrite(op.request.type)) return KeyOrder::Kind::kRead;
  return op.IsEager() ? KeyOrder::Kind::kWrite : KeyOrder::Kind::kSlowWrite;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(Settings settings) {
  if (settings.endpoints.empty()) return absl::InvalidArgumentError("no endpoint");
  if (settings.options.depth == 0 || settings.options.depth > kDepthMax) {
    return absl::InvalidArgumentError(absl::StrCat("depth must be 1 to ", kDepthMax));
  }
  GANNET_RETURN_IF_ERROR(CheckDeviceOption(settings.options.device));
  std::vector<std::vector<SocketAddress>> addresses;
  std::vector<Router::Server> servers;
  for (const std::string& text : settings.endpoints) {
    GANNET_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(text));
    GANNET_ASSIGN_OR_RETURN(addresses.emplace_back(), ResolveAll(endpoint.address, kDefaultPort));
    servers.push_back({text, endpoint.name, CanonicalAddress(addresses.back())});
  }
  GANNET_ASSIGN_OR_RETURN(Router router, Router::Create(std::move(servers)));
  GANNET_ASSIGN_OR_RETURN(std::shared_ptr<AuthFile> auth_file,
                          AuthFile::OpenIfNamed(settings.options.auth_file));
  return std::unique_ptr<Engine>(
      new Engine(settings, addresses, std::move(router), std::move(auth_file)));
}

Engine::Engine(const Settings& settings, const std::vector<std::vector<SocketAddress>>& addresses,
               Router router, std::shared_ptr<AuthFile> auth_file)
    : clock_(settings.clock),
      domains_(settings.domains),
      inline_key_sizes_(settings.endpoints.size() > 1 ? 0 : 8),
      slots_(settings.options.depth),
      fresh_(slots()),
      finished_(slots()),
      starved_(slots()),
      order_(slots()),
      released_(slots()),
      shared_windows_(slots()),
      servers_(std::move(router), settings.options.log) {
  const uint32_t servers = static_cast<uint32_t>(settings.endpoints.size());
  for (uint32_t s = 0; s < servers; ++s) {
    servers_.Add(EngineServer(settings.options.location_cache_bytes / servers, slots(),
                              std::make_unique<ClientSession>(
                                  MakeSessionOptions(settings, s, addresses[s], auth_file), this)));
  }
  for (Op& op : slots_) op.server = &servers_[0];
}

Engine::~Engine() = default;

uint32_t Engine::Begin(const OpRequest& request) {
  if (!slots_.HasRoom()) return kInvalidOp;
  Op& op = TakeSlot();
  op.word = LockWord(request.lock_word);
  op.request = request;
  op.request.key = {};
  if (request.key.empty()) {
    TakeKey(op, request.server, {});
  } else if (!servers_.routing_status().ok()) {
    FinishUnrouted(op);
  } else {
    TakeKey(op, servers_.ServerOf(request.key), request.key);
  }
  return op.number;
}

bool Engine::BeginGet(std::string_view key, std::span<std::byte> out, int64_t timeout_ns,
                      uint64_t user_data) {
  if (!slots_.HasRoom()) return false;
  Op& op = TakeGetSlot(out, timeout_ns, user_data);
  if (!servers_.routing_status().ok()) {
    FinishUnrouted(op);
  } else {
    TakeKey(op, servers_.ServerOf(key), key);
  }
  return true;
}

bool Engine::BeginGetInto(std::string_view key, std::span<const RegisteredSpan> into,
                          int64_t timeout_ns, uint64_t user_data) {
  if (!slots_.HasRoom()) return false;
  Op& op = TakeGetSlot({}, timeout_ns, user_data);
  op.request.type = OpType::kGetInto;
  op.request.memory = into;
  if (!servers_.routing_status().ok()) {
    FinishUnrouted(op);
  } else {
    TakeKey(op, servers_.ServerOf(key), key);
  }
  return true;
}

// Copies the key, and finds what follows from it and its server.
void Engine::TakeKey(Op& op, uint32_t server, std::string_view key) {
  op.request.server = server;
  op.server = &servers_[server];
  op.FindBuffers();
  op.key_bytes = static_cast<uint8_t>(key.size());
  if (!key.empty()) std::memcpy(op.key_memory, key.data(), key.size());
  op.HashKey();
}

// Ends an operation that was just begun: nobody knows which server has its key. REQUIRES: TakeSlot
// was called for it last.
void Engine::FinishUnrouted(Op& op) {
  fresh_.Pop();
  op.server = &servers_[0];
  op.request.server = 0;
  Finish(op, Outcome::kUnrouted);
}

size_t Engine::Poll(int64_t now_ns, std::span<Completion> completions) {
  now_ns_ = now_ns;
  report_ = completions.data();
  report_end_ = report_ + completions.size();
  if (!released_.empty()) [[unlikely]]
    StartReleased();
  if (sample_.Due(now_ns) && !fresh_.empty()) [[unlikely]]
    sample_.Begin(*fresh_.all().front(), now_ns);
  StartFresh();
  for (EngineServer& server : servers_) {
    const Completion* const first = report_;
    const bool may_send = server.session->Poll(now_ns);
    // Counted here, all hits of ordinary GETs cost one addition.
    static_assert(sizeof(Completion) == UsageLog::kBytesOfHit);
    server.session->usage().HitsIn(reinterpret_cast<const char*>(report_) -
                                   reinterpret_cast<const char*>(first));
    if (!may_send) continue;
    const bool has_queued = server.HasQueued();
    if (has_queued) SendQueued(server);
    server.session->Flush(/*may_wait=*/!has_queued);
  }
  if (!starved_.empty()) FeedStarved();
  if (now_ns >= earliest_deadline_ns_) CheckDeadlines();
  if (sample_.running()) [[unlikely]]
    sample_.EndIfOver(*clock_);
  return static_cast<size_t>(report_ - completions.data());
}

// Starts what was begun since the last Poll.
void Engine::StartFresh() {
  const int64_t now_ns = now_ns_;
  int64_t earliest_ns = earliest_deadline_ns_;
  for (Op* const fresh : fresh_.all()) {
    Op& op = *fresh;
    op.deadline_ns = now_ns + op.request.timeout_ns;
    earliest_ns = std::min(earliest_ns, op.deadline_ns);
    EngineServer& server = *op.server;
    if (op.request.type == OpType::kGet && server.session->ready() && order_.empty()) [[likely]] {
      StartOrdinaryGet(server, op);
    } else {
      StartOther(server, op);
    }
  }
  earliest_deadline_ns_ = earliest_ns;
  fresh_.Clear();
  if (!shared_windows_.empty()) [[unlikely]]
    ReadSharedWindows();
}

// Starts what is no ordinary GET, or may not start at once. Not part of StartFresh, so that it
// costs ordinary GETs nothing.
[[gnu::noinline]] void Engine::StartOther(EngineServer& server, Op& op) {
  if (op.request.type == OpType::kGetInto && server.session->ready() && order_.empty()) {
    return StartGetInto(server, op);
  }
  StartInOrder(op);
}

void Engine::StartInOrder(Op& op) {
  if (op.key_bytes == 0) return Start(op);
  const KeyOrder::Kind kind = OrderKind(op);
  const bool starts = order_.Enter(op.number, op.hash.value(), kind);
  op.in_order = kind != KeyOrder::Kind::kRead || !starts;
  if (starts) return Start(op);
  op.phase = Op::Phase::kHeldBack;
}

void Engine::Start(Op& op) {
  const ClientSession& session = op.session();
  if (!session.ready()) {
    if (session.down()) return Finish(op, Outcome::kUnavailable);
    // OnReady starts waiting operations in any order. The queue of requests keeps the order of
    // writes.
    if (IsWrite(op.request.type) && !op.touched) return op.QueueRequest();
    op.phase = Op::Phase::kWaiting;
    return;
  }
  switch (op.request.type) {
    case OpType::kGet:
      return StartGet(op);
    case OpType::kGetInto:
      return StartLookup(op, op.server->cache.Find(op.hash, op.place));
    case OpType::kExists:
    case OpType::kGetIfChanged:
      return StartHeadRead(op, op.server->cache.Find(op.hash, op.place));
    case OpType::kLock:
    case OpType::kLockAndGet:
      return StartLock(op);
    case OpType::kUnlock:
      return StartUnlock(op);
    case OpType::kExtendLock:
      if (!op.server->locks.Holds(op.hash, op.word)) return Finish(op, Outcome::kLockLost);
      return op.QueueRequest();
    case OpType::kPut:
    case OpType::kDelete:
    case OpType::kStats:
    case OpType::kPing:
    case OpType::kBreakLock:
    case OpType::kListLocks:
    case OpType::kStorage:
    case OpType::kListClients:
    case OpType::kSlowLog:
    case OpType::kAppend:
    case OpType::kPrepend:
    case OpType::kIncr:
    case OpType::kTouch:
    case OpType::kFlush:
      return op.QueueRequest();
    case OpType::kGetAndTouch:
      return op.touched ? StartLookup(op, Slot()) : op.QueueRequest();
  }
}

void Engine::LeaveOrder(Op& op) {
  op.in_order = false;
  order_.Leave(op.number, [this](uint32_t next, bool stays) {
    slots_[next].in_order = stays;
    released_.Push(next);
  });
}

// Starts operations whose turn came, and passes over those that ended before. What starts here may
// end at once, and release others.
void Engine::StartReleased() {
  while (!released_.empty()) {
    Op& op = slots_[released_.front()];
    released_.Pop();
    if (op.phase == Op::Phase::kHeldBack) Start(op);
  }
  // Not in the next Poll: until then those who want the windows may end.
  if (!shared_windows_.empty()) ReadSharedWindows();
}

// The device reports work done, for operations of any kind.
void Engine::OnWorksDone(uint32_t number, std::span<const InFlightWork::Work> works,
                         bool signaled) {
  EngineServer& server = servers_[number];
  const InFlightWork::Work last = works.back();
  if (signaled && last.kind() != InFlightWork::Kind::kMessage) {
    ++slots_[last.op()].done.cost.completions;
  }
  for (const InFlightWork::Work work : works) {
    if (work.is_read()) [[likely]] {
      OnReadDone(server, slots_[work.op()]);
    } else if (work.kind() == InFlightWork::Kind::kCompareAndSwap) {
      OnCompareAndSwapDone(slots_[work.op()]);
    }
  }
}

void Engine::OnDoorbell(uint32_t number) { ++slots_[number].done.cost.posts; }

// Ends operations at their deadline, and pauses that are over.
void Engine::CheckDeadlines() {
  earliest_deadline_ns_ = INT64_MAX;
  for (Op& op : slots_) {
    if (op.phase <= Op::Phase::kFresh) continue;
    if (op.busy.postponed) EndPause(op);
    if (op.over()) continue;
    if (now_ns_ >= op.deadline_ns) {
      Expire(op);
    } else {
      earliest_deadline_ns_ = std::min(earliest_deadline_ns_, op.deadline_ns);
    }
  }
}

int64_t Engine::IdleNs(int64_t now_ns, bool somebody_waits) const {
  if (!fresh_.empty() || !released_.empty() || !finished_.empty()) return 0;
  const int64_t idle_ns = servers_.IdleNs(now_ns, somebody_waits);
  if (earliest_deadline_ns_ == INT64_MAX) return idle_ns;
  return std::min(idle_ns, std::max<int64_t>(earliest_deadline_ns_ - now_ns, 0));
}

}  // namespace gannet
