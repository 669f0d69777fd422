#ifndef GANNET_CLIENT_ENGINE_ENGINE_H_
#define GANNET_CLIENT_ENGINE_ENGINE_H_

#include <gannet/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/engine/latency_sample.h"
#include "client/engine/lock_ops.h"
#include "client/engine/lookup_gets.h"
#include "client/engine/map_follower.h"
#include "client/engine/near_gets.h"
#include "client/engine/op.h"
#include "client/engine/op_recovery.h"
#include "client/engine/op_rerouting.h"
#include "client/engine/op_table.h"
#include "client/engine/ordinary_gets.h"
#include "client/engine/request_ops.h"
#include "client/engine/server_events.h"
#include "client/engine/server_set.h"
#include "client/routing/endpoint.h"
#include "client/session/client_session.h"
#include "common/base/client_clock.h"
#include "common/base/copy_bytes.h"
#include "common/base/data_path_checks.h"
#include "common/layout/key_hash_inline.h"

namespace gannet {

class ServerMaker;

// Everything a client does, for one owner thread: operations in fixed slots, each a state machine
// over the sessions. AsyncClient and Client are thin covers of it.
//
//   Begin -> Poll ... -> NextFinished -> look at op() -> Release
//
// Callers know an operation by its number. Within the engine functions take the Op.
//
// The engine begins operations and gives each to the part that does it. Each part has its own
// members, and is given those parts that it needs:
//
//   OpTable       the operations: slots, order of a key, which have ended, what is due
//   OrdinaryGets  GETs of ordinary items
//   NearGets      GETs that are answered from copies (NearCache)
//   LookupGets    all other GETs, and reads without a value; ValueReads READs large values for it
//   LockOps       locks
//   RequestOps    what goes by RPC
//   OpRecovery    deadlines, and connections that break and come back
//   OpRerouting   partitions that move to another server; does what FateOf decides
//   MapFollower   the newest map of the cluster, if the server is in one
//   ServerSet     the servers, and what is kept of each (engine_server.h)
//
// 1. Nothing allocates, locks, logs or makes a system call per operation.
// 2. An operation ends at its deadline on the client's clock, whatever the network does.
// 3. If a lock is acquired after its operation ended, the engine releases it. The same goes for a
//    lock whose unlock reached its deadline. The operation keeps its slot until the server answered
//    that the lock is released, or until the connection is gone, and the lock with it. A connection
//    that does not answer is broken, so no slot is kept for ever.
// 4. Operations on a key do not overtake writes of it that were begun before (key_order.h).
// 5. Who holds a resource waits only for one that comes later in this order: slot; turn of the key;
//    long buffer for an item; credit, and with it the buffers of the request. The server's answer
//    gives back the last two. An operation that ended waits for nothing, but keeps its slot and its
//    long buffer until Release. So callers must release one operation without waiting for another's
//    end while wants_buffer() (batch.h).
class Engine final : private OrdinaryGets {
 public:
  struct Settings {
    std::vector<std::string> endpoints;
    gannet::Options options;
    uint32_t connections_max = 1;  // per server
    bool nic_locks = true;         // false: as if the local device had no atomics
    bool server_clocks = true;     // false: as if nothing were known of the servers' clocks
    // How many of the work requests that are posted together share a completion: all, for a caller
    // who waits for all of them; fewer, for a caller who goes on with each.
    uint32_t signal_every = SendChain::kMax;
    std::reference_wrapper<const ClientClock> clock;  // outlives the engine
    std::shared_ptr<MemoryDomains> domains = MemoryDomains::Create();
  };
  // Resolves the names (may block on DNS) and begins to connect. FailedPrecondition: there is no
  // device. InvalidArgument: an endpoint is malformed, or a server is listed twice. Of
  // Options::auth_file: AuthFile::Open's errors. Unavailable:
  // DNS does not know a host.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(Settings settings);
  ~Engine() override;

  static constexpr uint32_t kDepthMax = 1 << 14;

  // Begins an operation and returns its number, or kInvalidOp if Options::depth operations are
  // alive or no slot is free yet. A request with a key goes to the server that has the key, any
  // other one to `request.server`. REQUIRES: the request is valid (client/api/make_requests.h makes
  // valid ones).
  uint32_t Begin(const OpRequest& request);
  // Begins a GET, in fewer steps. Returns false if there is no room. REQUIRES: the key is 1 to
  // kKeyBytesMax long.
  bool BeginGet(std::string_view key, std::span<std::byte> out, int64_t timeout_ns,
                uint64_t user_data);
  // Does the same without a call. REQUIRES: BeginsInline(key).
  bool BeginsInline(std::string_view key) const { return key.size() - 9 < inline_key_sizes_; }
  bool BeginGetInline(std::string_view key, std::span<std::byte> out, int64_t timeout_ns,
                      uint64_t user_data);
  // Begins a GET into the caller's memory, in fewer steps than Begin. Returns false if there is no
  // room. REQUIRES: key and spans are valid (CheckSpans).
  bool BeginGetInto(std::string_view key, std::span<const RegisteredSpan> into, int64_t timeout_ns,
                    uint64_t user_data);
  // Returns the copy that answers a GET at `now_ns`, which was read after the GET began, and counts
  // it; nullptr if there is none, or if it is time for a Poll. Then the GET is to be begun. The
  // copy is of the only server, and stays until the next Poll. REQUIRES: the client has a near
  // cache.
  const ItemCopies::Copy* FindNear(std::string_view key, int64_t now_ns);
  // Makes progress with everything; never blocks. Reports ordinary GETs that end to `completions`
  // as long as it has room, releases them, and returns their number. NextFinished tells the others.
  size_t Poll(int64_t now_ns, std::span<Completion> completions = {});
  // Returns an operation that finished and was not returned before; kInvalidOp if there is none.
  uint32_t NextFinished() { return ops_.NextFinished(); }
  bool HasFinished() const { return !ops_.finished().empty(); }
  const Op& op(uint32_t number) const { return ops_[number]; }
  void Release(uint32_t number) { ops_.Release(number); }

  // Operations have numbers below this.
  uint32_t slots() const { return ops_.size(); }
  // How many operations are begun and not released.
  uint32_t alive() const { return ops_.alive(); }
  // See MapFollower::StartStatus.
  std::optional<absl::Status> MapStatus() const { return follower_.StartStatus(); }
  // The newest map of the cluster, as far as operations know. WantMap asks for a newer one soon.
  OpRerouting::KnownMap known_map() const { return rerouting_.known(); }
  void WantMap(uint64_t revision) { rerouting_.Want(revision); }
  ServerSet& servers() { return servers_; }
  const ServerSet& servers() const { return servers_; }
  const ClientClock& clock() const { return clock_; }

  // Where the callers' own memory is registered. Thread safe.
  MemoryDomains& domains() const { return *domains_; }

  // How long Poll may be put off after `now_ns` if no descriptor becomes readable: until something
  // is due. 0: Poll now. If nobody waits, a dead server may be noticed later.
  int64_t IdleNs(int64_t now_ns, bool somebody_waits = true) const;
  // Returns true if a completion may come. An idle client's connections tell of a broken one.
  bool ExpectsCompletions() const {
    return ops_.not_free() > 0 || ServerEvents(servers_).ExpectsCompletions();
  }
  // Something waits for a buffer that an operation gives back when it is released.
  bool wants_buffer() const { return gets_.has_starved() || ServerEvents(servers_).wants_buffer(); }
  // For tests: slots, requests, queue entries and buffers that are not free. 0 unless something is
  // under way or leaks.
  uint32_t busy() const { return ops_.not_free() + servers_.busy(); }

 private:
  struct Listed {
    std::vector<Router::Server> servers;
    std::vector<ServerAddresses> addresses;
  };
  Engine(const Settings& settings, Listed listed, Router router,
         std::shared_ptr<AuthFile> auth_file);

  // SessionOwner
  void OnDoorbell(uint32_t op) override;
  void OnWorksDone(uint32_t server, std::span<const InFlightWork::Work> works,
                   bool signaled) override;
  void OnReply(RequestWindow::Entry* answered, const ReplyView& reply) override;
  absl::Status OnNamed(uint32_t server, std::string_view name) override;
  void OnReady(uint32_t server, Comeback comeback, std::span<const uint32_t> abandoned) override;
  void OnLost(uint32_t server) override;
  void OnMapReply(uint32_t server, const ReplyView& reply) override;
  void OnOldMap(uint32_t server) override;

  Op& TakeGetSlot(std::span<std::byte> out, int64_t timeout_ns, uint64_t user_data);
  void TakeKey(Op& op, std::string_view key);
  void TakeServer(Op& op, uint32_t server);
  void FinishUnrouted(Op& op);
  void StartFresh();
  void StartOther(EngineServer& server, Op& op);
  void Start(Op& op);
  void StartReleased();
  void CheckDeadlines();

  const ClientClock& clock_;
  const std::shared_ptr<MemoryDomains> domains_;
  size_t inline_key_sizes_;  // see BeginsInline; 0 if there are several servers
  uint64_t hash_seed_ = 0;   // of the only server
  LatencySample sample_;
  const std::shared_ptr<const ServerMaker> maker_;
  OpTable ops_;
  LookupGets gets_;
  NearGets near_gets_;
  LockOps locks_;
  RequestOps requests_;
  OpRerouting rerouting_;
  OpRecovery recovery_;
  MapFollower follower_;
  ServerSet servers_;  // last: its sessions report to the above
};

inline Op& Engine::TakeGetSlot(std::span<std::byte> out, int64_t timeout_ns, uint64_t user_data) {
  Op& op = ops_.Take();
  op.request.timeout_ns = timeout_ns;
  op.request.user_data = user_data;
  op.request.out = out;
  return op;
}

inline bool Engine::BeginGetInline(std::string_view key, std::span<std::byte> out,
                                   int64_t timeout_ns, uint64_t user_data) {
  GANNET_CHECK_DATA_PATH(BeginsInline(key), "the key is not of a length for this");
  if (!ops_.HasRoom()) [[unlikely]]
    return false;
  Op& op = TakeGetSlot(out, timeout_ns, user_data);
  if (key.size() - 9 > 7) __builtin_unreachable();  // helps what is inlined below
  op.key_bytes = static_cast<uint8_t>(key.size());
  CopyKeyBytes(op.key_memory, key.data(), key.size());
  op.hash = InlineKeyHash(key, hash_seed_);
  op.place = op.server->cache.Prefetch(op.hash);
  return true;
}

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_ENGINE_H_
