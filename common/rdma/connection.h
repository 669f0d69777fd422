#ifndef GANNET_COMMON_RDMA_CONNECTION_H_
#define GANNET_COMMON_RDMA_CONNECTION_H_

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rdma/address.h"
#include "common/rdma/cm_event.h"
#include "common/rdma/device.h"
#include "common/rdma/handle.h"
#include "common/rdma/queue_pair.h"

namespace gannet {

// The most private data that fits into each message of the connection manager.
inline constexpr size_t kRequestPrivateBytesMax = 56;
inline constexpr size_t kAcceptPrivateBytesMax = 196;
inline constexpr size_t kRejectPrivateBytesMax = 148;

// What the peer's device may do to this side's memory through the queue pair. The rights of each
// piece of memory (RemoteAccess) limit it further.
enum class PeerRights : uint8_t {
  kRead,
  kReadAtomic,
  kAll,  // also WRITE
};

// What one side brings into a connection. Both sides negotiate READs and atomics in flight from
// `caps`.
struct ConnectionOptions {
  QueuePairOptions queue_pair;
  DeviceCaps caps;  // of the device the id is on
};

// READs and atomics in flight on one connection.
struct ReadDepth {
  uint8_t served = 0;  // by this side, for the peer
  uint8_t issued = 0;  // by this side; 0: none at all
};

// A reliable connection: cm id and queue pair. Made by Connector (active side) and Listener
// (passive side).
//
// There is only one way to end it, on both sides, whichever side ended it first:
//   1. Post nothing more.
//   2. Call BeginClose. The queue pair goes to the error state, and the peer is told. A last work
//      request is posted, which is flushed behind all others.
//   3. Poll the send CQ until the flush of that last one comes. (If BeginClose said that it does
//      not come: until the CQ is empty.) Now no send, READ or CAS of this side is in flight, and
//      its memory may be reused.
//   4. Destroy it. Unused receives of an SRQ stay there. A completion of the connection may still
//      be in the CQ; ignore it by its queue pair number or WrId::owner.
//
// Thread safety: one thread. It need not be the thread that polls the Listener that made the
// connection. A Connector's connection belongs to the Connector's thread.
class Connection {
 public:
  // Takes ownership of `id`.
  Connection(Handle<rdma_cm_id> id, QueuePairLimits limits, ReadDepth depth);

  ibv_qp* qp() const { return id_->qp; }
  uint32_t qp_number() const { return id_->qp->qp_num; }
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

  // Begins to close. Returns true if a completion with `drain_wr_id` will come last. Only the first
  // call does anything.
  bool BeginClose(uint64_t drain_wr_id);
  bool closing() const { return closing_; }

 private:
  Handle<rdma_cm_id> id_;
  QueuePairLimits limits_;
  ReadDepth depth_;
  unsigned send_flags_;
  bool closing_ = false;
  bool drain_posted_ = false;
};

// Sets how long the device waits for an acknowledgement before it sends again, if the device
// supports it. Call it before rdma_connect or rdma_accept. The connection manager's default is bad.
void SetAckTimeout(rdma_cm_id* id);
// Sets how long a peer waits after it found no receive posted. Call it once connected. The
// connection manager's default, 0, means 655 ms.
void SetRnrTimer(ibv_qp* qp);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_CONNECTION_H_
