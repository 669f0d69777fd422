#ifndef GANNET_CLIENT_ENGINE_ENGINE_H_
#define GANNET_CLIENT_ENGINE_ENGINE_H_

#include <gannet/types.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/engine/fixed_stack.h"
#include "client/engine/op.h"
#include "client/engine/shared_windows.h"
#include "client/location_cache/location_cache.h"
#include "client/locks/lock_table.h"
#include "client/lookup/clock.h"
#include "client/routing/rendezvous.h"
#include "client/session/client_session.h"
#include "common/base/copy_bytes.h"
#include "common/layout/key_hash_inline.h"

namespace gannet {

// Of a time that a user gave, whatever it was.
inline int64_t TimeoutNs(std::chrono::milliseconds timeout) {
  constexpr int64_t kMsMax = 1'000'000'000;
  return std::clamp<int64_t>(timeout.count(), 0, kMsMax) * kNsPerMs;
}

// Everything the client does, for one owner thread: operations in fixed slots, each a state machine
// over the sessions. AsyncClient and Client are thin covers of it.
//
//   Begin -> [Poll ...] -> NextFinished -> look at op() -> Release
//
// 1. Nothing allocates, locks, logs or makes a system call per operation.
// 2. An operation ends at its deadline on the client's clock whatever the network does. Its slot is
//    reused only when nothing can write to its memory any more, and its number is in no queue:
//    there are twice as many slots as operations that may be alive.
// 3. A lock that is acquired after its operation ended is given back.
class Engine final : public SessionOwner {
 public:
  struct Settings {
    std::vector<std::string> endpoints;
    gannet::Options options;
    uint32_t queue_pairs_max = 1;  // per server
    bool nic_locks = true;         // false: as if the local device had no atomics
    // Work requests begun together that one completion may finish: all, for a caller who waits for
    // all; or fewer, for one who goes on with each.
    uint32_t signal_every = SendChain::kMax;
    const Clock* clock = Clock::Real();
  };
  // Looks the names up (may block on DNS) and begins to connect. FailedPrecondition: no device;
  // InvalidArgument: an endpoint that is none.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(Settings settings);
  ~Engine() override;

  static constexpr uint32_t kDepthMax = 1 << 14;

  static constexpr const char* kConnecting = "connecting";
  // OK: every server is connected. Unavailable, kConnecting: not yet. Otherwise why one cannot be.
  absl::Status ConnectStatus() const;

  // kNoOp: as many operations as Options::depth are alive, or their slots are not yet free.
  // REQUIRES: the request is valid (client/api/requests.h makes valid ones).
  uint32_t Begin(const OpRequest& request);
  // The same for a GET, in fewer steps; false: as kNoOp. REQUIRES: the key is 1 to kKeyBytesMax
  // long.
  bool BeginGet(std::string_view key, std::span<std::byte> out, int64_t timeout_ns,
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
  void Release(uint32_t i) {
    --alive_;
    ops_[i].phase = Op::Phase::kReleased;
    FreeIfQuiet(i);
  }

  uint32_t alive() const { return alive_; }
  uint32_t servers() const { return static_cast<uint32_t>(servers_.size()); }
  uint32_t ServerOf(std::string_view key) const { return rendezvous_.ServerOf(key); }
  const ClientSession& session(uint32_t i) const { return *servers_[i].session; }
  std::vector<ServerInfo> Info() const;
  const Clock& clock() const { return *clock_; }

  // To sleep: Arm, Poll once more, wait for one of the fds.
  void AppendFds(std::vector<pollfd>* fds) const;
  void Arm();
  // For tests: breaks the connections to a server, as a failure would.
  void Break(uint32_t server, absl::Status why) { servers_[server].session->Break(std::move(why)); }

 private:
  Engine(Settings settings, const std::vector<std::vector<SocketAddress>>& addresses);

  struct alignas(64) Server {
    LocationCache cache;
    LockTable locks;
    OpBuffers* buffers = nullptr;  // of the session, by operation; from its first OnReady on
    uint32_t buffers_lkey = 0;
    std::unique_ptr<ClientSession> session;
  };

  // SessionOwner: engine_recovery.cc, engine_get.cc, engine_request.cc.
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

  // engine.cc
  void Start(uint32_t i);
  void Finish(uint32_t i, Outcome outcome) {
    Op& op = ops_[i];
    op.phase = Op::Phase::kFinished;
    op.outcome = outcome;
    finished_.Push(i);
  }
  KeyHash HashOf(const Op& op) {
    return KeyHash::Of(op.request.key, SessionOf(op).view().hash_seed);
  }
  // Copies the key, and what follows from it.
  void TakeKey(Op& op, std::string_view key);
  bool HasRoom() const { return alive_ != depth_ && !free_.empty(); }
  // REQUIRES: HasRoom().
  uint32_t TakeSlot() {
    ++alive_;
    const uint32_t i = free_.Pop();
    ops_[i].phase = Op::Phase::kFresh;
    fresh_.Push(i);
    return i;
  }
  // A slot that was released, once nothing is busy with it any more.
  void FreeIfQuiet(uint32_t i) {
    const Op& op = ops_[i];
    if (op.phase == Op::Phase::kReleased && op.busy.quiet()) Free(i);
  }
  void Free(uint32_t i);
  void CheckDeadlines();

  // engine_ordinary_get.cc
  void StartFresh();
  void StartGet(Server& server, uint32_t i);
  void StartOrdinaryGet(Server& server, Op& op, uint32_t i);
  bool ReadItem(Server& server, Op& op, uint32_t i, Slot slot, Op::Phase phase);
  void ReadWindow(Server& server, Op& op, uint32_t i);
  void OnReadDone(Server& server, uint32_t i);
  void OnWindow(Server& server, Op& op, uint32_t i);
  void OnSharedWindow(uint32_t i);
  void OnItem(Server& server, Op& op, uint32_t i);
  void Report(Op& op, uint32_t i, const ItemView& item);
  static ItemInfo InfoOf(const ItemHeader& header) {
    return {header.version, header.flags, header.expiry_ms(), header.value_bytes};
  }
  // Where its item was found: at the cached location, or from now on cached.
  void OnFound(Op& op, Slot slot, bool cached) {
    op.done.cost.from_cached_location = cached;
    if (!cached) CacheOf(op).Remember(op.hash, slot);
  }
  bool PastExpiry(const ItemHeader& header) const {
    return header.expiry_ms() != 0 && clock_->WallMs() >= header.expiry_ms();
  }

  // engine_get.cc
  void StartLookup(uint32_t i, Slot cached);
  void GoOnAsLookup(uint32_t i);
  void Advance(uint32_t i, Lookup::Step step);
  std::byte* PlanTarget(uint32_t i, uint32_t* lkey);
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

  // engine_request.cc
  void QueueRequest(uint32_t i);
  RequestHeader HeaderOf(const Op& op) const;
  uint32_t EncodeLater(uint32_t i, const RegisteredPool& pool);
  void OnGetReply(uint32_t i, RequestWindow::Entry* entry, const ReplyView& reply);
  void OnWriteReply(uint32_t i, const ReplyView& reply);
  void OnLockReply(uint32_t i, const ReplyView& reply);
  void OnLateReply(uint32_t i, const ReplyView& reply);
  void KeepReplyBytes(uint32_t i, const ReplyView& reply);

  // engine_recovery.cc
  void Expire(uint32_t i);
  void LoseOp(uint32_t i);
  void AbandonRequest(uint32_t i);
  void IgnoreAnswer(uint32_t i);

  Server& ServerOf(const Op& op) { return servers_[op.request.server]; }
  ClientSession& SessionOf(const Op& op) { return *ServerOf(op).session; }
  LocationCache& CacheOf(const Op& op) { return ServerOf(op).cache; }
  LockTable& LocksOf(const Op& op) { return ServerOf(op).locks; }
  OpBuffers& BuffersOf(uint32_t i) { return ServerOf(ops_[i]).buffers[i]; }

  const Clock* const clock_;
  const uint32_t depth_;
  const Rendezvous rendezvous_;
  const bool several_servers_;
  int64_t now_ns_ = 0;
  int64_t earliest_deadline_ns_ = INT64_MAX;  // or earlier than it
  uint32_t alive_ = 0;                        // begun and not released
  uint64_t hash_seed_ = 0;                    // of the only server
  std::vector<Op> ops_;
  FixedStack<uint32_t> free_;
  FixedStack<uint32_t> fresh_;
  Completion* report_ = nullptr;  // of this Poll's caller: the next to fill in, and the end
  Completion* report_end_ = nullptr;
  FixedRing<uint32_t> finished_;
  FixedRing<uint32_t> starved_;
  SharedWindows shared_windows_;  // of operations that are being started
  std::vector<Server> servers_;   // last: their sessions report to the above
};

inline bool Engine::BeginGet(std::string_view key, std::span<std::byte> out, int64_t timeout_ns,
                             uint64_t user_data) {
  if (!HasRoom()) [[unlikely]]
    return false;
  const uint32_t i = TakeSlot();
  Op& op = ops_[i];
  OpRequest& request = op.request;
  request.type = OpType::kGet;
  request.under_lock = request.share_window = false;
  request.server = 0;
  request.key = {op.key, key.size()};
  request.timeout_ns = timeout_ns;
  request.user_data = user_data;
  request.out = out;
  // 9 to 16 bytes, and no server to choose: no call.
  if (key.size() - 9 > 7 || several_servers_) [[unlikely]] {
    TakeKey(op, key);
  } else {
    CopyKeyBytes(op.key, key.data(), key.size());
    op.hash = InlineKeyHash(key, hash_seed_);
    servers_.front().cache.Prefetch(op.hash);
  }
  return true;
}

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_ENGINE_H_
