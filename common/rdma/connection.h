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

// Private data that fit the connection manager's messages.
inline constexpr size_t kRequestPrivateBytesMax = 56;
inline constexpr size_t kAcceptPrivateBytesMax = 196;
inline constexpr size_t kRejectPrivateBytesMax = 148;

// What one side brings into a connection. The READs and atomics in flight are negotiated from
// `caps`, both ways.
struct ConnectionOptions {
  QueuePairOptions queue_pair;
  DeviceCaps caps;  // of the device the id is on
};

// READs and atomics in flight on one connection.
struct ReadDepth {
  uint8_t served = 0;  // the peer's, that this side serves at once
  uint8_t issued = 0;  // this side's own; 0: none at all
};

// A reliable connection: cm id and queue pair. Made by Connector (active side) and Listener
// (passive side).
//
// The one way to end it, on both sides, whoever ended it first:
//   1. post nothing more;
//   2. BeginClose: the queue pair goes to the error state, the peer is told, and a last work
//      request is posted that is flushed behind all others;
//   3. poll the send CQ until that one's flush came (when BeginClose said that none comes: until
//      the CQ is empty). Now no send, READ or CAS of this side is in flight, its memory may be
//      reused;
//   4. destroy. Receives of an SRQ that were not used stay there; a completion of the connection
//      may still be in the CQ, to be ignored by its queue pair number or WrId::owner.
//
// Thread safety: one thread, which need not be the one that polls the Listener that made it; that
// of a Connector is the Connector's.
class Connection {
 public:
  // Takes `id` over.
  Connection(Handle<rdma_cm_id> id, QueuePairLimits limits, ReadDepth depth);

  ibv_qp* qp() const { return id_->qp; }
  uint32_t qp_number() const { return id_->qp->qp_num; }
  rdma_cm_id* id() const { return id_.get(); }
  const QueuePairLimits& limits() const { return limits_; }
  // As negotiated, on the active side once established. Work beyond it waits in the device.
  ReadDepth depth() const { return depth_; }
  void set_depth(ReadDepth depth) { depth_ = depth; }

  // Flags that every SEND and WRITE must carry here. siw completes those before the READs in front
  // of it have arrived, unless it is told to wait; all other devices complete in order by
  // themselves.
  unsigned send_flags() const { return send_flags_; }

  // True: a completion with `drain_wr_id` comes last. May be called again; only the first call does
  // anything.
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

// Sets what the connection manager leaves at bad defaults, where the device knows it: how long the
// device waits for an acknowledgement before it sends again (before rdma_connect or rdma_accept)
// ...
void SetAckTimeout(rdma_cm_id* id);
// ... and how long a peer waits after it found no receive posted (0 would be 655 ms; once
// connected).
void SetRnrTimer(ibv_qp* qp);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_CONNECTION_H_
