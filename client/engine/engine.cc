// Begins operations, starts them at the next Poll, and gives what sessions report to the class that
// waits for it. The order within a Poll is that of its lines: what was released, what was begun,
// each server's session, its queue, its chain, and deadlines last. Ordinary GETs stay within this
// source (ordinary_gets_inline.h); all that others need lies in functions of their own, so that it
// costs those nothing.

#include "client/engine/engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/engine/ordinary_gets_inline.h"
#include "client/engine/server_maker.h"
#include "client/routing/endpoint.h"
#include "common/base/check.h"
#include "common/base/data_path_checks.h"
#include "common/base/server_list.h"
#include "common/base/status_macros.h"
#include "common/rdma/device.h"
#include "common/rdma/softverbs_exec.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

constexpr size_t kInlineKeySizes = 8;  // from 9 bytes on

absl::Status CheckDeviceOption(const std::string& device) {
  if (device == "soft") return RunningOnSoftverbs() ? absl::OkStatus() : NoDeviceStatus();
  if (device == "auto") return ListDevices().empty() ? NoDeviceStatus() : absl::OkStatus();
  return OpenDevice(device).status();
}

absl::Status CheckNearCacheBytes(uint64_t bytes) {
  if (bytes == 0 || (bytes >= NearCache::kBytesMin && bytes <= NearCache::kBytesMax)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("near_cache_bytes must be 0, or ",
                                                 NearCache::kBytesMin, " to ", NearCache::kBytesMax,
                                                 ", and not ", bytes));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(Settings settings) {
  if (settings.endpoints.empty()) return absl::InvalidArgumentError("no endpoint");
  if (settings.options.depth == 0 || settings.options.depth > kDepthMax) {
    return absl::InvalidArgumentError(absl::StrCat("depth must be 1 to ", kDepthMax));
  }
  GANNET_RETURN_IF_ERROR(CheckNearCacheBytes(settings.options.near_cache_bytes));
  if (settings.options.rails == 0 || settings.options.rails > kRailsMax) {
    return absl::InvalidArgumentError(absl::StrCat("rails must be 1 to ", kRailsMax));
  }
  GANNET_RETURN_IF_ERROR(CheckDeviceOption(settings.options.device));
  Listed listed;
  for (const std::string& text : settings.endpoints) {
    GANNET_ASSIGN_OR_RETURN(const Endpoint endpoint, ParseEndpoint(text));
    GANNET_ASSIGN_OR_RETURN(std::vector<SocketAddress> all, ResolveEndpoint(endpoint));
    listed.servers.push_back({text, endpoint.name, CanonicalAddress(all)});
    listed.addresses.push_back({std::move(all), endpoint.group, NamesOf(endpoint)});
  }
  GANNET_ASSIGN_OR_RETURN(Router router, Router::Create(listed.servers));
  GANNET_ASSIGN_OR_RETURN(std::shared_ptr<AuthFile> auth_file,
                          AuthFile::OpenIfNamed(settings.options.auth_file));
  return std::unique_ptr<Engine>(
      new Engine(settings, std::move(listed), std::move(router), std::move(auth_file)));
}

Engine::Engine(const Settings& settings, Listed listed, Router router,
               std::shared_ptr<AuthFile> auth_file)
    : OrdinaryGets(ops_, 2 * settings.options.depth, gets_),
      clock_(settings.clock),
      domains_(settings.domains),
      inline_key_sizes_(settings.endpoints.size() > 1 ? 0 : kInlineKeySizes),
      maker_(std::make_shared<ServerMaker>(settings, listed.addresses[0],
                                           2 * settings.options.depth, std::move(auth_file),
                                           static_cast<SessionOwner*>(this))),
      ops_(settings.options.depth, /*all_enter=*/settings.options.near_cache_bytes > 0),
      gets_(ops_, hit_reports(), clock_),
      near_gets_(ops_, hit_reports(), gets_, settings.options.near_cache_bytes > 0),
      locks_(ops_, gets_),
      requests_(ops_, gets_, locks_, rerouting_),
      rerouting_(ops_, servers_, locks_),
      recovery_(ops_, servers_, rerouting_),
      follower_(
          {.ops = &ops_, .servers = &servers_, .rerouting = &rerouting_, .maker = maker_.get()},
          listed.servers),
      servers_(std::move(router), maker_.get()) {
  const uint32_t servers = static_cast<uint32_t>(listed.servers.size());
  for (uint32_t s = 0; s < servers; ++s) {
    servers_.Add(maker_->Make(s, settings.endpoints[s], listed.addresses[s], servers));
  }
  for (Op& op : ops_) op.server = &servers_[0];
}

Engine::~Engine() = default;

uint32_t Engine::Begin(const OpRequest& request) {
  if (!ops_.HasRoom()) return kInvalidOp;
  Op& op = ops_.Take();
  op.lock.word = LockWord(request.lock_word);
  op.request = request;
  op.request.key = {};
  if (request.key.empty() && request.server < servers_.size()) {
    op.key_bytes = 0;
    TakeServer(op, request.server);
  } else if (request.key.empty() || !servers_.routing_status().ok()) {
    FinishUnrouted(op);
  } else {
    TakeKey(op, request.key);
  }
  return op.number;
}

bool Engine::BeginGet(std::string_view key, std::span<std::byte> out, int64_t timeout_ns,
                      uint64_t user_data) {
  GANNET_CHECK_DATA_PATH(!key.empty() && key.size() <= kKeyBytesMax, "no key is so long");
  if (!ops_.HasRoom()) return false;
  Op& op = TakeGetSlot(out, timeout_ns, user_data);
  if (!servers_.routing_status().ok()) {
    FinishUnrouted(op);
  } else {
    TakeKey(op, key);
  }
  return true;
}

bool Engine::BeginGetInto(std::string_view key, std::span<const RegisteredSpan> into,
                          int64_t timeout_ns, uint64_t user_data) {
  if (!ops_.HasRoom()) return false;
  Op& op = TakeGetSlot({}, timeout_ns, user_data);
  op.request.type = OpType::kGetInto;
  op.request.memory = into;
  if (!servers_.routing_status().ok()) {
    FinishUnrouted(op);
  } else {
    TakeKey(op, key);
  }
  return true;
}

// Copies the key, and finds its server.
void Engine::TakeKey(Op& op, std::string_view key) {
  op.key_bytes = static_cast<uint8_t>(key.size());
  std::memcpy(op.key_memory, key.data(), key.size());
  if (servers_.one()) [[likely]]
    return TakeServer(op, 0);
  if (!servers_.router().has_routes()) return TakeServer(op, servers_.ServerOf(key));
  const OpType type = op.request.type;
  if (type == OpType::kUnlock || type == OpType::kExtendLock) return servers_.AimAtLock(op);
  servers_.Aim(op);
  if (op.server == servers_.waiting_or_null()) ops_.LookAt(0);  // to ask for the map
}

// Finds what follows from an operation's server and its key.
void Engine::TakeServer(Op& op, uint32_t server) {
  op.request.server = server;
  op.server = &servers_[server];
  op.FindBuffers();
  op.HashKey();
}

// Ends an operation that was just begun: nobody knows which server has its key. REQUIRES: it was
// taken last.
void Engine::FinishUnrouted(Op& op) {
  GANNET_CHECK(ops_.fresh().all().back() == &op, "another operation was taken last");
  ops_.fresh().Pop();
  op.server = &servers_[0];
  op.request.server = 0;
  ops_.Finish(op, Outcome::kUnrouted);
}

const ItemCopies::Copy* Engine::FindNear(std::string_view key, int64_t now_ns) {
  if (!servers_.one()) return nullptr;
  const KeyHash hash =
      BeginsInline(key) ? InlineKeyHash(key, hash_seed_) : KeyHash::Of(key, hash_seed_);
  return near_gets_.FindNow(servers_[0], hash, key, now_ns);
}

size_t Engine::Poll(int64_t now_ns, std::span<Completion> completions) {
  ops_.SetNow(now_ns);
  HitReports& reports = hit_reports();
  reports.Begin(completions);
  if (ops_.has_released()) [[unlikely]]
    StartReleased();
  if (near_gets_.on() && near_gets_.AnswerFresh()) [[unlikely]]
    return static_cast<size_t>(reports.end() - completions.data());
  if (sample_.Due(now_ns) && !ops_.fresh().empty()) [[unlikely]]
    sample_.Begin(*ops_.fresh().all().front(), now_ns);
  StartFresh();
  for (EngineServer& server : servers_) {
    const Completion* const first = reports.end();
    const bool may_send = server.session->Poll(now_ns);
    // Counted here, all hits of ordinary GETs cost one addition.
    static_assert(sizeof(Completion) == UsageLog::kBytesOfHit);
    server.session->news().usage().HitsIn(reinterpret_cast<const char*>(reports.end()) -
                                          reinterpret_cast<const char*>(first));
    if (!may_send) continue;
    const bool has_queued = server.HasQueued();
    if (has_queued) [[unlikely]]
      requests_.SendQueued(server);
    server.session->Flush(/*may_wait=*/!has_queued);
  }
  if (gets_.has_starved()) gets_.FeedStarved();
  if (now_ns >= ops_.look_ns()) CheckDeadlines();
  if (sample_.running()) [[unlikely]]
    sample_.EndIfOver(clock_);
  return static_cast<size_t>(reports.end() - completions.data());
}

// Starts what was begun since the last Poll.
void Engine::StartFresh() {
  const int64_t now_ns = ops_.now_ns();
  int64_t earliest_ns = ops_.look_ns();
  for (Op* const fresh : ops_.fresh().all()) {
    Op& op = *fresh;
    op.deadline_ns = now_ns + op.request.timeout_ns;
    earliest_ns = std::min(earliest_ns, op.deadline_ns);
    EngineServer& server = *op.server;
    if (op.request.type == OpType::kGet && server.session->ready() && ops_.order().empty())
        [[likely]] {
      StartGet(ops_, server, op);
    } else {
      StartOther(server, op);
    }
  }
  ops_.LookNever();
  ops_.LookAt(earliest_ns);
  ops_.fresh().Clear();
  ReadSharedWindows();
}

// Starts what is no ordinary GET, may not start at once, or may be copied. Not part of
// StartFresh, so that it costs ordinary GETs nothing.
[[gnu::noinline]] void Engine::StartOther(EngineServer& server, Op& op) {
  if (op.request.type == OpType::kGetInto && server.session->ready() && ops_.order().empty()) {
    return gets_.StartInto(op);
  }
  if (op.key_bytes == 0) return Start(op);
  if (!ops_.Enter(op)) return;
  const bool near = server.near_cache != nullptr && NearGets::AreFor(op);
  if (!near || !near_gets_.Start(server, op)) Start(op);
}

void Engine::Start(Op& op) {
  if (op.misplaced) [[unlikely]]
    rerouting_.Aim(op);
  const ClientSession& session = op.session();
  if (!session.ready()) {
    if (session.down()) return ops_.Finish(op, Outcome::kUnavailable);
    // OnReady starts waiting operations in any order. The queue of requests keeps the order of
    // writes.
    if (op.IsWholeWrite()) return op.QueueRequest();
    op.phase.GoTo(Op::Phase::kWaiting);
    return;
  }
  switch (op.request.type) {
    case OpType::kGet:
      return StartAnyGet(op);
    case OpType::kGetInto:
      return gets_.Start(op, op.server->cache.Find(op.hash, op.place));
    case OpType::kExists:
    case OpType::kGetIfChanged:
      return gets_.StartHeadRead(op, op.server->cache.Find(op.hash, op.place));
    case OpType::kLock:
    case OpType::kLockAndGet:
      return locks_.StartLock(op);
    case OpType::kUnlock:
      return locks_.StartUnlock(op);
    case OpType::kExtendLock:
      if (!op.server->locks.Holds(op.hash, op.lock.word, op.place_changes)) {
        return ops_.Finish(op, Outcome::kLockLost);
      }
      return op.QueueRequest();
    case OpType::kStats:
      op.server->AskForRails();
      return op.QueueRequest();
    case OpType::kPut:
    case OpType::kDelete:
    case OpType::kPing:
    case OpType::kBreakLock:
    case OpType::kListLocks:
    case OpType::kStorage:
    case OpType::kListClients:
    case OpType::kSlowLog:
    case OpType::kMap:
    case OpType::kAppend:
    case OpType::kPrepend:
    case OpType::kIncr:
    case OpType::kTouch:
      return op.QueueRequest();
    case OpType::kFlush:
      op.rpc.flush_map = rerouting_.known().revision;
      return op.QueueRequest();
    case OpType::kGetAndTouch:
      return op.rpc.second_step ? gets_.Start(op, Slot()) : op.QueueRequest();
  }
}

void Engine::StartReleased() {
  ops_.TakeReleased([this](Op& op) { Start(op); });
  // Not in the next Poll: until then those who want the windows may end.
  ReadSharedWindows();
}

// The device reports work done, for operations of any kind.
void Engine::OnWorksDone(uint32_t number, std::span<const InFlightWork::Work> works,
                         bool signaled) {
  EngineServer& server = servers_[number];
  const InFlightWork::Work last = works.back();
  if (signaled && last.kind() < InFlightWork::Kind::kMessage) {
    ++ops_[last.op()].done.cost.completions;
  }
  for (const InFlightWork::Work work : works) {
    if (work.is_read()) [[likely]] {
      OnRead(ops_, server, ops_[work.op()]);
    } else if (work.kind() == InFlightWork::Kind::kCompareAndSwap) {
      locks_.OnCompareAndSwapDone(ops_[work.op()]);
    } else if (work.kind() == InFlightWork::Kind::kOwnRead) {
      server.near_cache->OnRead(*server.session, ops_.now_ns());
    }
  }
}

void Engine::OnDoorbell(uint32_t number) { ++ops_[number].done.cost.posts; }

void Engine::OnReply(RequestWindow::Entry* answered, const ReplyView& reply) {
  if (requests_.OnReply(answered, reply) && ops_.has_released()) StartReleased();
}

absl::Status Engine::OnNamed(uint32_t server, std::string_view name) {
  const absl::StatusOr<bool> moved = servers_.OnNamed(server, name);
  if (!moved.ok()) return moved.status();
  if (*moved) {
    recovery_.OnKeysMoved();
    servers_.OnKeysMoved(server);
  }
  return absl::OkStatus();
}

void Engine::OnReady(uint32_t number, Comeback comeback, std::span<const uint32_t> abandoned) {
  EngineServer& server = servers_[number];
  hash_seed_ = server.session->grant().hash_seed;
  if (server.near_cache != nullptr) server.near_cache->OnReady(server.session->grant().incarnation);
  recovery_.OnReady(server, comeback, abandoned, [this](Op& op) { Start(op); });
  ReadSharedWindows();
  follower_.OnReady(number, comeback);
}

void Engine::OnLost(uint32_t server) {
  NearCache* const near_cache = servers_[server].near_cache.get();
  if (near_cache != nullptr) near_cache->OnLost(*servers_[server].session);
  recovery_.OnLost(servers_[server]);
  follower_.OnLost(server);
}

void Engine::OnMapReply(uint32_t server, const ReplyView& reply) {
  follower_.OnReply(server, reply);
}

void Engine::OnOldMap(uint32_t) { ops_.LookAt(ops_.now_ns()); }

// Ends operations at their deadline, and pauses that are over. Looks for the cluster's map.
void Engine::CheckDeadlines() {
  ops_.LookNever();
  for (Op& op : ops_) {
    if (op.phase <= Op::Phase::kFresh) continue;
    if (op.pauses()) ops_.EndPause(op);
    if (op.over()) continue;
    if (ops_.now_ns() >= op.deadline_ns) {
      recovery_.Expire(op);
    } else {
      ops_.LookAt(op.deadline_ns);
    }
  }
  if (!follower_.Look()) return;
  sample_.OnServersMoved();
  inline_key_sizes_ = servers_.one() ? kInlineKeySizes : 0;
}

int64_t Engine::IdleNs(int64_t now_ns, bool somebody_waits) const {
  if (!ops_.fresh().empty() || ops_.has_released() || HasFinished()) return 0;
  const int64_t idle_ns = ServerEvents(servers_).IdleNs(now_ns, somebody_waits);
  if (ops_.look_ns() == INT64_MAX) return idle_ns;
  return std::min(idle_ns, std::max<int64_t>(ops_.look_ns() - now_ns, 0));
}

}  // namespace gannet
