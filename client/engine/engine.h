#ifndef GANNET_CLIENT_ENGINE_ENGINE_H_
#define GANNET_CLIENT_ENGINE_ENGINE_H_

#include <gannet/types.h>

#include <algorithm>
#include <array>
#include <chrono>
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
#include "client/engine/fixed_stack.h"
#include "client/engine/key_order.h"
#include "client/engine/op.h"
#include "client/engine/shared_windows.h"
#include "client/location_cache/location_cache.h"
#include "client/locks/lock_table.h"
#include "client/lookup/clock.h"
#include "client/routing/router.h"
#include "client/session/client_session.h"
#include "common/base/copy_bytes.h"
#include "common/layout/key_hash_inline.h"

namespace gannet {

// What an Engine keeps of one server.
struct alignas(64) EngineServer {
  LocationCache cache;
  LockTable locks;
  std::unique_ptr<ClientSession> session;
};

// Everything the client does, for one owner thread: operations in fixed slots, each a state machine
// over the sessions. AsyncClient and Client are thin covers of it.
//
//   Begin -> [Poll ...] -> NextFinished -> look at op() -> Release
//
// 1. Nothing allocates, locks, logs or makes a system call per operation.
// 2. An operation ends at its deadline on the client's clock whatever the network does. Its slot is
//    reused only when nothing can write to its memory any more, and its number is in no queue:
//    there are twice as many slots as operations that may be alive.
// 3. A lock that is acquired after its operation ended is given back. It, and one whose unlock came
//    to its deadline, keeps its slot until the server answered that it is released, or until the
//    connection, and the lock with it, is gone. A connection that does not answer is broken, so no
//    slot is kept for ever.
// 4. Operations on a key do not overtake the writes of it that were begun before (key_order.h).
class Engine final : public SessionOwner {
 public:
  struct Settings {
    std::vector<std::string> endpoints;
    gannet::Options options;
    uint32_t queue_pairs_max = 1;  // per server
    bool nic_locks = true;         // false: as if the local device had no atomics
    bool server_clocks = true;     // false: as if nothing were known of the servers' clocks
    // Work requests begun together that one completion may finish: all, for a caller who waits for
    // all; or fewer, for one who goes on with each.
    uint32_t signal_every = SendChain::kMax;
    const Clock* clock = Clock::Real();
  };
  // Looks the names up (may block on DNS) and begins to connect. FailedPrecondition: no device;
  // InvalidArgument: an endpoint that is none, or a server that is listed twice; Unavailable: DNS
  // does not know a host.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(Settings settings);
  ~Engine() override;

  static constexpr uint32_t kDepthMax = 1 << 14;

  // Whether the client can start: at least one server is connected, every other one is too or
  // cannot be reached, and it is known whose keys are whose. nullopt: not yet; call it again after
  // a Poll. An error: it cannot, and why. `last_call`: no more is waited for.
  std::optional<absl::Status> StartStatus(bool last_call);
  // Why keys cannot be routed; OK: they can.
  const absl::Status& routing_status() const { return router_.status(); }

  // kNoOp: as many operations as Options::depth are alive, or their slots are not yet free.
  // A request with a key goes to the server that has the key, any other to `request.server`.
  // REQUIRES: the request is valid (client/api/requests.h makes valid ones).
  uint32_t Begin(const OpRequest& request);
  // The same for a GET, in fewer steps; false: as kNoOp. REQUIRES: the key is 1 to kKeyBytesMax
  // long.
  bool BeginGet(std::string_view key, std::span<std::byte> out, int64_t timeout_ns,
                uint64_t user_data);
  // And without a call: for keys of 9 to 16 bytes, where there is no server to choose.
  bool BeginsInline(std::string_view key) const { return key.size() - 9 < inline_key_sizes_; }
  // REQUIRES: BeginsInline.
  bool BeginGetInline(std::string_view key, std::span<std::byte> out, int64_t timeout_ns,
                      uint64_t user_data);
  // Makes progress with everything; never blocks. Ordinary GETs that end are reported to
  // `completions` as long as it has room, and are released then; returns how many. All else goes to
  // NextFinished.
  size_t Poll(int64_t now_ns, std::span<Completion> completions = {});
  // An operation that finished and was not yet returned; kNoOp: none.
  uint32_t NextFinished() {
    if (finished_.empty()) return kNoOp;
    const uint32_t i = finished_.front();
    finished_.Pop();
    return i;
  }
  bool HasFinished() const { return !finished_.empty(); }
  const Op& op(uint32_t i) const { return ops_[i]; }
  uint32_t slots() const { return static_cast<uint32_t>(ops_.size()); }
  void Release(uint32_t i);

  // Begun and not released.
  uint32_t alive() const { return slots() - free_.size() - lingering_; }
  // For tests: slots, requests, queue entries and buffers that are not free; 0 when nothing is
  // under way, or something leaks.
  uint32_t busy() const;
  uint32_t servers() const { return static_cast<uint32_t>(servers_.size()); }
  uint32_t ServerOf(std::string_view key) const { return router_.ServerOf(key); }
  const ClientSession& session(uint32_t i) const { return *servers_[i].session; }
  std::vector<ServerInfo> Info() const;
  const Clock& clock() const { return *clock_; }
  // Of an operation for a server that ends now, though nothing of it was sent.
  Outcome LateOutcome(uint32_t server) const {
    return session(server).ready() ? Outcome::kDeadlineExceeded : Outcome::kUnavailable;
  }

  // To sleep (wake_fd.h does it): Arm, Poll once more, wait until a descriptor is readable or
  // IdleNs is over. Calls use(server, descriptor, kind) for each descriptor.
  void ForEachFd(const std::function<void(uint32_t, int, FdKind)>& use) const;
  uint64_t fds_version() const;  // another one: the descriptors are others
  // Returns true if a completion may come. An idle client's connections tell of a broken one.
  bool ExpectsCompletions() const;
  void Arm();
  void OnReadable(uint32_t server, FdKind kind);
  // How long Poll may be put off after `now_ns` if no descriptor becomes readable: until something
  // is due. 0: Poll now. Where nobody waits, a dead server need not be noticed at once.
  int64_t IdleNs(int64_t now_ns, bool somebody_waits = true) const;
  // A connection is being made or taken down; only the descriptors tell when to go on.
  bool in_motion() const;
  // The last Poll found completions. The next one may find those of the READs that it posted.
  bool progressed() const;
  // Somebody waits for a buffer that an operation gives back when it is released.
  bool wants_buffer() const;
  // For tests: breaks the connections to a server, as a failure would.
  void Break(uint32_t server, absl::Status why) { servers_[server].session->Break(std::move(why)); }

 private:
  Engine(Settings settings, const std::vector<std::vector<SocketAddress>>& addresses,
         Router router);

  using Server = EngineServer;

  // SessionOwner: engine_recovery.cc, engine_get.cc, engine_request.cc, engine_servers.cc.
  void OnDoorbell(uint32_t i) override;
  bool OnPostOrdered(uint32_t i, InFlightWork::Kind kind, bool doorbell) override;
  void OnWorksDone(uint32_t server, std::span<const InFlightWork::Work> works,
                   bool signaled) override;
  uint32_t OnEncode(uint32_t i, RequestWindow::Entry* entry, std::span<std::byte> out) override;
  void OnRequestPosted(uint32_t i, bool doorbell) override;
  void OnRequestSignaled(uint32_t i) override;
  void OnReply(RequestWindow::Entry* entry, const ReplyView& reply) override;
  void OnLost(uint32_t server) override;
  void OnReady(uint32_t server, Comeback comeback) override;
  void OnAbandoned(uint32_t i) override;
  absl::Status OnNamed(uint32_t server, std::string_view name) override;

  // engine_servers.cc
  bool StaysWhereItIs(const Op& op) const;
  void OnKeysMoved(uint32_t server);
  uint32_t FinishUnrouted(Op& op);

  // engine.cc
  void Start(uint32_t i);
  void StartInOrder(Op& op);
  KeyOrder::Kind OrderOf(const Op& op) const;
  void StartReleased();
  void LeaveOrder(Op& op);
  void Finish(uint32_t i, Outcome outcome) {
    Op& op = ops_[i];
    op.phase = Op::Phase::kFinished;
    op.outcome = outcome;
    if (op.in_order) [[unlikely]]
      LeaveOrder(op);
    finished_.Push(i);
  }
  // Copies the key, and what follows from it and its server.
  void TakeKey(Op& op, uint32_t server, std::string_view key);
  void HashKeyOf(Op& op);
  // Less than depth_ operations are alive, and a slot is free.
  bool HasRoom() const { return free_.size() > spare_; }
  // REQUIRES: HasRoom().
  Op& TakeSlot() {
    Op* op = free_.Pop();
    op->phase = Op::Phase::kFresh;
    fresh_.Push(op);
    return *op;
  }
  // For a GET; nullptr: there is none.
  Op* TakeGetSlot(std::span<std::byte> out, int64_t timeout_ns, uint64_t user_data) {
    if (!HasRoom()) [[unlikely]]
      return nullptr;
    Op& op = TakeSlot();
    op.request.timeout_ns = timeout_ns;
    op.request.user_data = user_data;
    op.request.out = out;
    return &op;
  }
  // A slot that was released, once nothing is busy with it any more.
  void FreeIfQuiet(uint32_t i);
  void Free(Op& op);
  void KeepReleased(uint32_t n);
  // Deadlines, and pauses that are over.
  void CheckDeadlines();

  // engine_ordinary_get.cc
  void StartFresh();
  void StartGet(Server& server, Op& op);
  void StartOrdinaryGet(Server& server, Op& op);
  bool ReadItem(Server& server, Op& op, Slot slot, Op::Phase phase);
  void ReadWindow(Server& server, Op& op);
  void OnReadDone(Server& server, Op& op);
  void OnWindow(Server& server, Op& op);
  void OnSharedWindow(Op& op);
  void OnItem(Op& op, bool cached);
  void OnExpiringItem(Op& op, bool cached);
  void Report(Op& op, const ItemInfo& info);
  std::chrono::milliseconds TtlLeft(const Server& server, uint64_t expiry_ms) const;
  static ItemInfo NeverExpiring(const ItemHeader& header) {
    return {header.version, header.flags, 0, header.value_bytes};
  }
  ItemInfo InfoOf(const Server& server, const ItemHeader& header) const {
    ItemInfo info{header.version, header.flags, header.expiry_ms(), header.value_bytes};
    if (info.expiry_ms != 0) info.ttl_left = TtlLeft(server, info.expiry_ms);
    return info;
  }
  // Perhaps: only the server can tell. This Poll began after the operation did, so an item that was
  // not expired then is an answer.
  bool PastExpiry(const Server& server, const ItemHeader& header) const {
    return header.expiry_ms() != 0 &&
           !server.session->server_time().SurelyBefore(header.expiry_ms(), now_ns_);
  }

  // engine_get.cc
  void StartLookup(uint32_t i, Slot cached);
  void GoOnAsLookup(uint32_t i);
  void Advance(uint32_t i, Lookup::Step step);
  std::byte* PlanTarget(uint32_t i, std::optional<uint32_t>* lkey);
  void PlanRead(uint32_t i);
  void PlanOrderedRead(uint32_t i);
  void Starve(uint32_t i);
  std::byte* LongBuffer(Op& op, uint32_t bytes);
  void OnLookupRead(uint32_t i);
  void FeedLookup(uint32_t i);
  Lookup::Buffers LookupBuffers(uint32_t i);
  void FinishHit(uint32_t i, ItemInfo info, std::string_view value);
  void FeedStarved();
  void ReturnItem(Op& op);

  // engine_multi_get.cc
  void ShareWindow(Server& server, uint32_t i);
  void ReadSharedWindows();
  void FeedSharers(uint32_t i);

  // engine_lock.cc
  void StartLock(uint32_t i);
  void StartUnlock(uint32_t i);
  void QueueCompareAndSwap(uint32_t i, uint64_t expected, uint64_t desired);
  void OnCompareAndSwapDone(uint32_t i);
  void OnLockAnswer(uint32_t i, bool acquired, LockWord holder);
  void GiveBackLock(uint32_t i);
  void KeepReleasing(uint32_t i, Op::Phase was);

  // engine_request.cc
  void QueueRequest(uint32_t i);
  void PushRequest(uint32_t i);
  void CancelRequest(uint32_t i);
  void Postpone(uint32_t i);
  void EndPause(uint32_t i);
  RequestHeader HeaderOf(const Op& op) const;
  uint32_t EncodeLater(uint32_t i, const RegisteredPool& pool);
  void OnGetReply(uint32_t i, RequestWindow::Entry* entry, const ReplyView& reply);
  void OnWriteReply(uint32_t i, const ReplyView& reply);
  void OnAnswer(uint32_t i, RequestWindow::Entry* entry, const ReplyView& reply);
  void OnLockReply(uint32_t i, const ReplyView& reply);
  void OnLateReply(uint32_t i, const ReplyView& reply);
  void OnBreakReply(Op& op, ReplyStatus status);
  bool KeepReplyBytes(uint32_t i, const ReplyView& reply);

  // engine_recovery.cc
  void Expire(uint32_t i);
  void LoseOp(uint32_t i);
  void AbandonRequest(uint32_t i);
  void IgnoreAnswer(uint32_t i);

  Server& ServerOf(const Op& op) const { return *op.server; }
  ClientSession& SessionOf(const Op& op) const { return *ServerOf(op).session; }
  // The value travels in the request; false also before the first connection, when nobody knows.
  // REQUIRES: it is that of a write.
  bool IsEager(const Op& op) const {
    const size_t bytes = sizeof(RequestHeader) + op.key_bytes + op.request.value.size();
    return bytes <= SessionOf(op).eager_bytes_max();
  }
  LocationCache& CacheOf(const Op& op) { return ServerOf(op).cache; }
  LockTable& LocksOf(const Op& op) { return ServerOf(op).locks; }
  // nullptr: its server was never connected.
  OpBuffers* BuffersOf(const Op& op) {
    const ClientSession& session = SessionOf(op);
    return session.was_ready() ? session.memory().op(op.number) : nullptr;
  }

  const Clock* const clock_;
  const uint32_t depth_;
  const std::function<void(LogLevel, std::string_view)> log_;
  Router router_;
  bool started_ = false;           // StartStatus was OK
  const size_t inline_key_sizes_;  // see BeginsInline
  int64_t now_ns_ = 0;
  int64_t earliest_deadline_ns_ = INT64_MAX;  // or end of a pause, or earlier than it
  uint64_t hash_seed_ = 0;                    // of the only server
  uint32_t lingering_ = 0;                    // released, but something is busy with them
  uint32_t spare_;                            // so many free slots are more than depth_ allows
  std::vector<Op> ops_;
  FixedStack<Op*> free_;
  FixedStack<Op*> fresh_;
  Completion* report_ = nullptr;  // of this Poll's caller: the next to fill in, and the end
  Completion* report_end_ = nullptr;
  FixedRing<uint32_t> finished_;
  FixedRing<uint32_t> starved_;
  KeyOrder order_;
  FixedRing<uint32_t> released_;  // by `order_`, to be started
  SharedWindows shared_windows_;  // of operations that are being started
  std::vector<Server> servers_;   // last: their sessions report to the above
};

inline bool Engine::BeginGetInline(std::string_view key, std::span<std::byte> out,
                                   int64_t timeout_ns, uint64_t user_data) {
  Op* const op = TakeGetSlot(out, timeout_ns, user_data);
  if (op == nullptr) [[unlikely]]
    return false;
  if (key.size() - 9 > 7) __builtin_unreachable();  // for what is compiled in below
  op->key_bytes = static_cast<uint8_t>(key.size());
  CopyKeyBytes(op->key_memory, key.data(), key.size());
  op->hash = InlineKeyHash(key, hash_seed_);
  op->place = op->server->cache.Prefetch(op->hash);
  return true;
}

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_ENGINE_H_
