#include "client/engine/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/routing/endpoint.h"
#include "common/base/status_macros.h"
#include "common/rdma/device.h"
#include "common/rdma/softverbs_exec.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

bool Writes(OpType type) { return type == OpType::kPut || type == OpType::kDelete; }

absl::Status CheckDeviceOption(const std::string& device) {
  if (device == "soft") return RunningOnSoftverbs() ? absl::OkStatus() : NoDeviceStatus();
  if (device == "auto") return ListDevices().empty() ? NoDeviceStatus() : absl::OkStatus();
  return OpenDevice(device).status();
}

std::function<void(bool, const std::string&)> LogOf(const Options& options) {
  if (!options.log) return nullptr;
  return [log = options.log](bool error, const std::string& line) {
    log(error ? LogLevel::kWarning : LogLevel::kInfo, line);
  };
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
  return std::unique_ptr<Engine>(new Engine(std::move(settings), addresses, std::move(router)));
}

Engine::Engine(Settings settings, const std::vector<std::vector<SocketAddress>>& addresses,
               Router router)
    : clock_(settings.clock),
      depth_(settings.options.depth),
      log_(settings.options.log),
      router_(std::move(router)),
      inline_key_sizes_(settings.endpoints.size() > 1 ? 0 : 8),
      spare_(depth_),
      ops_(2 * depth_),
      free_(2 * depth_),
      fresh_(2 * depth_),
      finished_(2 * depth_),
      starved_(2 * depth_),
      order_(2 * depth_),
      released_(2 * depth_),
      shared_windows_(2 * depth_) {
  const uint32_t slots = 2 * depth_;
  for (uint32_t i = slots; i-- > 0;) {
    ops_[i].number = i;
    free_.Push(&ops_[i]);
  }
  const uint32_t servers = static_cast<uint32_t>(settings.endpoints.size());
  for (uint32_t s = 0; s < servers; ++s) {
    auto session = std::make_unique<ClientSession>(
        ClientSession::Options{.number = s,
                               .endpoint = settings.endpoints[s],
                               .addresses = addresses[s],
                               .device = settings.options.device,
                               .ops = slots,
                               .queue_pairs_max = settings.queue_pairs_max,
                               .reads_wanted = depth_,
                               .connect_timeout_ns = TimeoutNs(settings.options.connect_timeout),
                               .reconnect = settings.options.reconnect,
                               .nic_locks = settings.nic_locks,
                               .server_clock = settings.server_clocks,
                               .signal_every = settings.signal_every,
                               .clock = clock_,
                               .log = LogOf(settings.options)},
        this);
    servers_.push_back({.cache = LocationCache(settings.options.location_cache_bytes / servers),
                        .locks = {},
                        .session = std::move(session)});
  }
  for (Op& op : ops_) op.server = &servers_.front();
}

Engine::~Engine() = default;

uint32_t Engine::Begin(const OpRequest& request) {
  if (!HasRoom()) return kNoOp;
  Op& op = TakeSlot();
  op.word = LockWord(request.lock_word);
  op.request = request;
  op.request.key = {};
  if (request.key.empty()) {
    TakeKey(op, request.server, {});
    return op.number;
  }
  if (!router_.status().ok()) return FinishUnrouted(op);
  TakeKey(op, ServerOf(request.key), request.key);
  return op.number;
}

bool Engine::BeginGet(std::string_view key, std::span<std::byte> out, int64_t timeout_ns,
                      uint64_t user_data) {
  Op* const op = TakeGetSlot(out, timeout_ns, user_data);
  if (op == nullptr) return false;
  if (!router_.status().ok()) {
    FinishUnrouted(*op);
    return true;
  }
  TakeKey(*op, ServerOf(key), key);
  return true;
}

void Engine::TakeKey(Op& op, uint32_t server, std::string_view key) {
  op.request.server = server;
  op.server = &servers_[server];
  op.buffers = BuffersOf(op);
  op.key_bytes = static_cast<uint8_t>(key.size());
  if (!key.empty()) std::memcpy(op.key_memory, key.data(), key.size());
  HashKeyOf(op);
}

void Engine::HashKeyOf(Op& op) {
  op.hash = KeyHash::Of(op.key(), SessionOf(op).view().hash_seed);
  op.place = CacheOf(op).Prefetch(op.hash);
}

size_t Engine::Poll(int64_t now_ns, std::span<Completion> completions) {
  now_ns_ = now_ns;
  report_ = completions.data();
  report_end_ = report_ + completions.size();
  if (!released_.empty()) [[unlikely]]
    StartReleased();
  StartFresh();
  for (const Server& server : servers_) server.session->Poll(now_ns);
  if (!starved_.empty()) FeedStarved();
  if (now_ns >= earliest_deadline_ns_) CheckDeadlines();
  return static_cast<size_t>(report_ - completions.data());
}

void Engine::Start(uint32_t i) {
  Op& op = ops_[i];
  Server& server = ServerOf(op);
  if (!server.session->ready()) {
    if (server.session->down()) return Finish(i, Outcome::kUnavailable);
    // OnReady starts what waits, in no order of its own. The queue of requests keeps the order of
    // writes.
    if (Writes(op.request.type)) return QueueRequest(i);
    op.phase = Op::Phase::kWaiting;
    return;
  }
  switch (op.request.type) {
    case OpType::kGet:
      return StartGet(server, op);
    case OpType::kLock:
    case OpType::kLockAndGet:
      return StartLock(i);
    case OpType::kUnlock:
      return StartUnlock(i);
    case OpType::kExtendLock:
      if (!LocksOf(op).Holds(op.hash, op.word)) return Finish(i, Outcome::kLockLost);
      return QueueRequest(i);
    case OpType::kPut:
    case OpType::kDelete:
    case OpType::kStats:
    case OpType::kPing:
    case OpType::kBreakLock:
    case OpType::kListLocks:
      return QueueRequest(i);
  }
}

void Engine::StartInOrder(Op& op) {
  if (op.key_bytes == 0) return Start(op.number);
  const KeyOrder::Kind kind = OrderOf(op);
  const bool starts = order_.Enter(op.number, op.hash.value(), kind);
  op.in_order = kind != KeyOrder::Kind::kRead || !starts;
  if (starts) return Start(op.number);
  op.phase = Op::Phase::kHeldBack;
}

KeyOrder::Kind Engine::OrderOf(const Op& op) const {
  if (!Writes(op.request.type)) return KeyOrder::Kind::kRead;
  return IsEager(op) ? KeyOrder::Kind::kWrite : KeyOrder::Kind::kSlowWrite;
}

void Engine::LeaveOrder(Op& op) {
  op.in_order = false;
  order_.Leave(op.number, [this](uint32_t next, bool stays) {
    ops_[next].in_order = stays;
    released_.Push(next);
  });
}

// Those that ended before their turn came are passed over. What starts here may end at once, and
// release others. Windows that it shares are READ at once: until the next Poll, whose they would
// be, those who want them may end.
void Engine::StartReleased() {
  while (!released_.empty()) {
    const uint32_t i = released_.front();
    released_.Pop();
    if (ops_[i].phase == Op::Phase::kHeldBack) Start(i);
  }
  // Now, while all of them are still there to be read for.
  if (!shared_windows_.empty()) ReadSharedWindows();
}

// What an operation of any kind may have left behind.
void Engine::Free(Op& op) {
  if (op.item.data != nullptr) ReturnItem(op);
  op.phase = Op::Phase::kFree;
  op.acquiring = op.lock_acquired = false;
  op.request = {};
  op.done = {};
  op.value = {};
  op.word = LockWord();
  op.value_needed = 0;
  free_.Push(&op);
}

void Engine::Release(uint32_t i) {
  Op& op = ops_[i];
  if (op.busy.quiet()) return Free(op);
  op.phase = Op::Phase::kReleased;
  KeepReleased(lingering_ + 1);
}

void Engine::FreeIfQuiet(uint32_t i) {
  Op& op = ops_[i];
  if (op.phase != Op::Phase::kReleased || !op.busy.quiet()) return;
  KeepReleased(lingering_ - 1);
  Free(op);
}

void Engine::KeepReleased(uint32_t n) {
  lingering_ = n;
  spare_ = depth_ - std::min(depth_, n);
}

void Engine::CheckDeadlines() {
  earliest_deadline_ns_ = INT64_MAX;
  for (uint32_t i = 0; i < ops_.size(); ++i) {
    const Op& op = ops_[i];
    if (op.phase <= Op::Phase::kFresh) continue;
    if (op.busy.postponed) EndPause(i);
    if (op.over()) continue;
    if (now_ns_ >= op.deadline_ns) {
      Expire(i);
    } else {
      earliest_deadline_ns_ = std::min(earliest_deadline_ns_, op.deadline_ns);
    }
  }
}

std::chrono::milliseconds Engine::TtlLeft(const Server& server, uint64_t expiry_ms) const {
  const uint64_t left_ms = server.session->server_time().LeftMs(expiry_ms, now_ns_);
  return std::chrono::milliseconds(left_ms);
}

uint32_t Engine::busy() const {
  uint32_t busy = slots() - free_.size();
  for (const Server& server : servers_) busy += server.session->busy();
  return busy;
}

}  // namespace gannet
