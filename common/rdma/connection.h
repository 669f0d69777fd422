#ifndef GANNET_COMMON_RDMA_CONNECTION_H_
#define GANNET_COMMON_RDMA_CONNECTION_H_

#include <rdma/rdma_cma.h>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "common/base/checked_state.h"
#include "common/base/clock.h"
#include "common/rdma/completion.h"
#include "common/rdma/device.h"
#include "common/rdma/handle.h"
#include "common/rdma/idler.h"
#include "common/rdma/queue_pair.h"
#include "common/rdma/receives.h"

namespace gannet {

// The most private data that fits into each message of the connection manager.
inline constexpr size_t kRequestPrivateBytesMax = 56;
inline constexpr size_t kAcceptPrivateBytesMax = 196;
inline constexpr size_t kRejectPrivateBytesMax = 148;

// The longest that who blocks waits for a device to flush a queue pair.
inline constexpr int64_t kDrainNsMax = 2 * kNsPerSecond;

// What the peer's device may do to this side's memory through the queue pair. The rights of each
// piece of memory (RemoteAccess) limit it further.
enum class PeerRights : uint8_t {
  kRead,
  kReadAtomic,
  kAll,  // also WRITE
};

// Where the messages of a connection's own receives go: `count` places of `bytes` each, one behind
// the other.
struct ReceiveOptions {
  ibv_sge first{};  // the first place
  uint32_t count = 0;
  WrId id;  // of the first place's work request; the slot of each further one is one more
};

// What one side brings into a connection. Both sides negotiate READs and atomics in flight from
// `caps`.
struct ConnectionOptions {
  QueuePairOptions queue_pair;
  DeviceCaps caps;  // of the device the id is on
  // Where all of it completes. It reserves room there for as long as it lives. nullptr: where
  // `queue_pair` says, and its owner has reserved the room.
  CompletionQueue* completions = nullptr;
  ReceiveOptions receives = {};  // which set queue_pair.recv_wrs
};

// READs and atomics in flight on one connection.
struct ReadDepth {
  uint8_t served = 0;  // by this side, for the peer
  uint8_t issued = 0;  // by this side; 0: none at all
};

enum class ConnectionState : uint8_t { kConnecting, kConnected, kDraining, kDrained };
// The steps that there are. Only without a queue pair there is nothing to drain.
constexpr bool MayFollow(ConnectionState from, ConnectionState to) {
  using enum ConnectionState;
  return to > from && (from != kConnected || to == kDraining);
}

// One reliable connection: cm id, queue pair, its receives, and its drain. Made by Connector
// (active side) and Listener (passive side), for all who connect. Several may share one completion
// queue.
//
//   connecting --Open--> connected --BeginDrain--> draining --flushed--> drained
//
// From connecting, BeginDrain leads to draining, too, or at once to drained if there is no queue
// pair yet.
//
// 1. Sends go out while it is connected, and at no other time. Receives are posted when the queue
//    pair is made, and again until it drains.
// 2. It ends in one way, on both sides, whichever side ended it first: BeginDrain closes the gate,
//    moves the queue pair to the error state, tells the peer, and posts a last work request, the
//    drain, which is flushed behind all others. Its owner goes on to poll the completion queue,
//    and says OnDrained when the drain has completed. Then nothing is in flight, and the owner
//    destroys it.
// 3. On iWARP no drain completes (drain_completes()). There the change of state has flushed all
//    work, and its completions are in the queue. Whoever needs them polls until it is empty,
//    and says so (LookDrained).
// 4. Once it is drained, no send, READ or CAS of this side is in flight, and its memory may be
//    reused. Destroy it then. Unused receives of an SRQ stay there. A completion of the connection
//    may still be in the queue; ignore it by its queue pair number or WrId::owner.
// 5. How long a drain may take is its owner's to decide. Who waits no longer (LookDrained, `late`)
//    destroys the queue pair as it is, and only then reuses the memory.
// 6. It never moves, because work requests and events point to it.
//
// Ownership: the queue pair, the cm id and the receives' work requests; the owner has the memory of
// the messages, the protection domain and the completion queue, which outlive it. Nothing here is
// about sessions: one session may have any number of connections, on any devices.
//
// Thread safety: one thread. It need not be the thread that polls the Listener that made the
// connection. A Connector's connection belongs to the Connector's thread.
class Connection {
 public:
  using State = ConnectionState;

  // Takes ownership of `id`.
  explicit Connection(Handle<rdma_cm_id> id, ReadDepth depth = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Makes the queue pair and posts its receives. ResourceExhausted: a limit of the device, or
  // memlock, or no room in the completion queue. Internal: the device refuses receives. REQUIRES:
  // kConnecting, without queue pair.
  absl::Status MakeQueuePair(const ConnectionOptions& options);
  // Opens the gate: the peer may be sent to. REQUIRES: kConnecting, with a queue pair.
  void Open();

  State state() const { return state_.now(); }
  bool connected() const { return state() == State::kConnected; }
  // It was begun to drain, or is drained.
  bool closing() const { return state() >= State::kDraining; }
  bool drained() const { return state() == State::kDrained; }

  ibv_qp* qp() const { return qp_; }  // nullptr before MakeQueuePair
  uint32_t qp_number() const { return qp_->qp_num; }
  rdma_cm_id* id() const { return id_.get(); }
  const QueuePairLimits& limits() const { return limits_; }
  // The negotiated depth; on the active side it is known once established. Work beyond it waits in
  // the device.
  ReadDepth depth() const { return depth_; }
  void set_depth(ReadDepth depth) { depth_ = depth; }

  // Flags that every SEND and WRITE must carry here. Without them, siw completes a SEND or WRITE
  // before the READs in front of it have arrived. All other devices complete in order by
  // themselves.
  unsigned send_flags() const { return send_flags_; }

  // Posts a chain of work requests with one doorbell. REQUIRES: connected().
  PostResult Post(ibv_send_wr* chain) const {
    assert(connected());
    return PostSend(qp_, chain);
  }

  // The message that a receive brought: `bytes` as its completion says. REQUIRES, of these two: it
  // has own receives, and `slot` is of one that has completed and was not recycled.
  std::span<const std::byte> Message(uint32_t slot, uint32_t bytes) const {
    return receives_->Message(slot - first_receive_, bytes);
  }
  // The message was looked at. Its bytes stay until PostReceives.
  void Recycle(uint32_t slot) { receives_->Recycle(slot - first_receive_); }
  // Posts what was recycled, with one doorbell. Returns false if the device refuses: then the
  // connection is to be closed. Does nothing once the gate is closed.
  bool PostReceives() { return closing() || receives_ == nullptr || receives_->Post(qp_); }

  // Begins to drain. Returns true if a completion with `drain_wr_id` will come last. Only the first
  // call does anything.
  bool BeginDrain(uint64_t drain_wr_id);
  // Returns true if a completion will tell that it is drained. REQUIRES: closing().
  bool drain_completes() const { return drain_posted_; }
  // The drain has completed. Does nothing if it was taken for drained before.
  void OnDrained() {
    if (state() == State::kDraining) state_.To(State::kDrained);
  }
  // Returns whether it is drained. It is taken for drained if it is too `late` to wait, and if no
  // completion tells but there is `nothing_more` in the completion queue. REQUIRES: closing().
  bool LookDrained(bool nothing_more, bool late = false);

 private:
  Handle<rdma_cm_id> id_;
  ibv_qp* qp_ = nullptr;  // the id's
  // Own receives, and the slot of the first one's work request. nullptr: it has none, or an SRQ.
  std::unique_ptr<Receives> receives_;
  uint32_t first_receive_ = 0;
  CompletionQueue* completions_ = nullptr;  // where room is reserved
  uint32_t reserved_ = 0;
  QueuePairLimits limits_;
  ReadDepth depth_;
  unsigned send_flags_ = 0;
  CheckedState<State> state_{State::kConnecting};
  bool drain_posted_ = false;
};

// Drains connections that share `queue`, and blocks until all are drained, or for `limit_ns`. What
// completes meanwhile is dropped, so nobody else's completions may come to the queue. `idle`:
// instead of yielding the core. REQUIRES: none of them was begun to drain in another way.
void DrainAll(CompletionQueue* queue, std::span<Connection* const> connections,
              int64_t limit_ns = kDrainNsMax, Idler* idle = nullptr);

// Sets how long the device waits for an acknowledgement before it sends again, if the device
// supports it. Call it before rdma_connect or rdma_accept. The connection manager's default is bad.
void SetAckTimeout(rdma_cm_id* id);
// Sets how long a peer waits after it found no receive posted. Call it once connected. The
// connection manager's default, 0, means 655 ms.
void SetRnrTimer(ibv_qp* qp);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_CONNECTION_H_
