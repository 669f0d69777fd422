#ifndef GANNET_SERVER_RPC_REQUESTS_H_
#define GANNET_SERVER_RPC_REQUESTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "common/protocol/message.h"
#include "common/protocol/plain_put.h"
#include "common/rdma/completion.h"
#include "server/group/replica/group_standing.h"
#include "server/memory/store/recorded_updates.h"
#include "server/memory/store/store.h"
#include "server/rpc/connection_closer.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/held_replies.h"
#include "server/rpc/index_growth.h"
#include "server/rpc/lock_requests.h"
#include "server/rpc/long_values.h"
#include "server/rpc/observation.h"
#include "server/rpc/receive_buffers.h"
#include "server/rpc/received.h"
#include "server/rpc/replies.h"
#include "server/rpc/request_admission.h"
#include "server/rpc/send_batch.h"
#include "server/rpc/tier_gets.h"
#include "server/rpc/worker_context.h"
#include "server/sessions/session/session.h"
#include "server/writes/writes.h"

namespace gannet {

// The datapath of one worker: from a completion to a reply in the batch. RequestAdmission judges
// whether a request is executed. Those that take several completions go on elsewhere: LongValues,
// TierGets, LockRequests, HeldReplies. Owner thread only.
class Requests {
 public:
  // All outlive this. The parts may not exist yet.
  Requests(WorkerContext& context, ConnectionCloser& closer, HeldReplies& held_replies,
           LongValues& long_values, TierGets& tier_gets, LockRequests& lock_requests,
           IndexGrowth& index_growth, Observation& observation)
      : context_(context),
        closer_(closer),
        held_replies_(held_replies),
        long_values_(long_values),
        tier_gets_(tier_gets),
        lock_requests_(lock_requests),
        index_growth_(index_growth),
        observation_(observation) {}

  static constexpr size_t kPollMax = 64;  // completions before replies are posted
  static_assert(kPollMax <= SendBatch::kDirectMax);

  // Polls this rail from now on. At first it is the server's first one.
  void Use(uint32_t rail) {
    cq_ = context_.rails[rail].cq.get();
    receives_ = context_.rails[rail].receives.get();
    of_rail_ = &context_.connections.of_rail(rail);
  }
  // Of that rail.
  const CompletionQueue& cq() const { return *cq_; }
  ReceiveBuffers& receives() { return *receives_; }
  // Polls and serves at most `most` completions, and returns how many there were. REQUIRES: most <=
  // kPollMax; the batch was posted since kPollMax completions.
  size_t Poll(size_t most);
  // Counts what Poll served by the fast path.
  void CountUpdates() {
    served_ |= updates_ > 0;
    context_.counters.by_opcode[static_cast<size_t>(Opcode::kPut)].Add(updates_);
    context_.counters.rpcs.Add(std::exchange(updates_, 0));
  }
  // Where all parts put their replies. It is here because a pointer would cost each PUT a load.
  Replies& replies() { return replies_; }
  const Replies& replies() const { return replies_; }
  // Serves what was set aside, as far as it may be by now.
  void ServeAside();
  // Returns true if a request other than a heartbeat was served since the last call.
  bool TakeServed() { return std::exchange(served_, false); }

 private:
  bool OnCompletion(const ibv_wc& completion, Received* received);
  void OnOtherCompletion(const ibv_wc& completion);
  void OnSendDone(const ibv_wc& completion, uint32_t position);
  // For a store that records changes or leases items: guesses where items are, and serves the
  // requests if it records. Returns whether it did.
  bool BeginOthers(std::span<Received> received);
  void ServeRecorded(std::span<const Received> received);
  template <bool kAllKeys>
  void ServeWaiting(std::span<const Received> received);
  template <bool kAllKeys>
  bool ServeUpdatesInLane(std::span<const Received>* received);
  template <bool kAllKeys>
  bool ServeUpdateAlone(const Received& request);
  // How an update comes by its key's lock: it tries, in a lane of many, or waits for it.
  enum class Behind : uint8_t { kTriedLock, kLock };
  template <bool kAllKeys, Behind kBehind>
  bool HoldUpdate(const Received& request);
  template <Behind kBehind>
  bool DecideUpdate(const Received& request, const Session& session, const PlainPut& put,
                    Writes::UpdateDecided* decided);
  void NoteUpdates(std::span<const Received> received);
  // Of a store that does not record, or of one that does, where it is added to recorded_updates_.
  enum class Updates : uint8_t { kAtOnce, kRecorded };
  template <Updates kUpdates>
  bool ServeUpdate(const Received& request);
  void ServeAtOnce(std::span<const Received> received);
  // Returns true if one more request would exceed the connection's credits.
  bool TooManyUnanswered(const ServerConnection& connection) const;

  void OnMessage(ServerConnection* connection, std::span<const std::byte> message);
  void Execute(ServerConnection* connection, const RequestView& request);
  void OnRequest(ServerConnection* connection, const RequestView& request);

  // For requests that change something. They are decided at once, in the order in which they came.
  void ExecuteWrite(ServerConnection* connection, const RequestView& request);
  // For GET, STATS and LIST LOCKS, whose replies have values.
  void ExecuteWithValue(ServerConnection* connection, const RequestView& request);
  ReplyHeader ExecuteInto(std::span<std::byte> value_out, const ServerConnection& connection,
                          const RequestView& request);
  void ReplyWithValue(ServerConnection* connection, const ReplyHeader& reply);

  WorkerContext& context_;
  ConnectionCloser& closer_;
  HeldReplies& held_replies_;
  LongValues& long_values_;
  TierGets& tier_gets_;
  LockRequests& lock_requests_;
  IndexGrowth& index_growth_;
  Observation& observation_;
  // Of the context. They are here because the way through it would cost each PUT a load.
  Store& store_ = context_.server.store;
  Writes& writes_ = context_.server.writes;
  CompletionQueue* cq_ = context_.rails[0].cq.get();
  ReceiveBuffers* receives_ = context_.rails[0].receives.get();
  ConnectionsByNumber* of_rail_ = &context_.connections.of_rail(0);
  const GroupStanding* const standing_ = context_.server.standing;
  const uint32_t unanswered_max_ = context_.unanswered_max;

  Dispatcher dispatcher_{&store_, &writes_};
  Replies replies_{context_, closer_};
  Store::RecordedUpdates recorded_updates_{&store_};
  RequestAdmission admission_{context_, closer_, held_replies_, replies_};
  // Replies' values are made here first, because only then is it known whether they need a buffer.
  std::array<std::byte, EagerValueBytesMax(0)> value_;
  bool served_ = false;   // since TakeServed
  uint64_t updates_ = 0;  // served by ServeUpdate and not counted yet
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_REQUESTS_H_
