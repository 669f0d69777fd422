#ifndef GANNET_COMMON_RDMA_QUEUE_PAIR_H_
#define GANNET_COMMON_RDMA_QUEUE_PAIR_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rdma/handle.h"

namespace gannet {

// The 64-bit id of a work request, as its completion returns it: the kind of work, its owner, and
// one of the owner's slots. The owner is a number that is not reused soon, so that a late
// completion is not taken for a new owner's.
struct WrId {
  uint8_t kind = 0;
  uint32_t owner = 0;  // 24 bits
  uint32_t slot = 0;

  static constexpr uint32_t kOwnerMask = (1u << 24) - 1;

  constexpr uint64_t Pack() const {
    return uint64_t{kind} << 56 | uint64_t{owner & kOwnerMask} << 32 | slot;
  }
  static constexpr WrId Unpack(uint64_t id) {
    return {static_cast<uint8_t>(id >> 56), static_cast<uint32_t>(id >> 32) & kOwnerMask,
            static_cast<uint32_t>(id)};
  }
  friend constexpr bool operator==(const WrId&, const WrId&) = default;
};

struct QueuePairOptions {
  ibv_pd* pd = nullptr;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  ibv_srq* srq = nullptr;  // then recv_wrs is ignored
  uint32_t send_wrs = 64;  // the queue pair gets one more, kept for closing
  uint32_t recv_wrs = 0;
  uint32_t send_sges = 1;
  uint32_t recv_sges = 1;
  uint32_t inline_bytes = 0;  // wanted; QueuePairLimits says how many there are
};

// The limits that a queue pair got: at least what was asked for, except that inline_bytes may be
// less.
struct QueuePairLimits {
  uint32_t send_wrs = 0;
  uint32_t recv_wrs = 0;
  uint32_t inline_bytes = 0;
};

// Makes a reliable-connection queue pair on a cm id, which from then on owns it. Only work requests
// with IBV_SEND_SIGNALED complete. Reduces inline_bytes until the device accepts.
// ResourceExhausted: a limit of the device, or memlock.
absl::StatusOr<QueuePairLimits> CreateQueuePair(rdma_cm_id* id, const QueuePairOptions& options);

absl::StatusOr<Handle<ibv_srq>> CreateSharedReceiveQueue(ibv_pd* pd, uint32_t wrs,
                                                         uint32_t sges = 1);

enum class PostResult : uint8_t {
  kPosted,
  kQueueFull,  // the queue is full, and nothing was posted; poll completions first
  kBroken,     // the device refused, or took only part of the chain. Nobody knows what is in
               // flight, so the connection must be closed
};

// Interprets a refusal, off the hot path. siw returns negative errno values.
PostResult RefusalResult(int error, bool nothing_taken);

// Each of these posts a chain of work requests with one call into the device (one doorbell).
inline PostResult PostSend(ibv_qp* qp, ibv_send_wr* chain) {
  ibv_send_wr* refused = nullptr;
  const int error = ibv_post_send(qp, chain, &refused);
  return error == 0 ? PostResult::kPosted : RefusalResult(error, refused == chain);
}
inline PostResult PostReceive(ibv_qp* qp, ibv_recv_wr* chain) {
  ibv_recv_wr* refused = nullptr;
  const int error = ibv_post_recv(qp, chain, &refused);
  return error == 0 ? PostResult::kPosted : RefusalResult(error, refused == chain);
}
inline PostResult PostReceive(ibv_srq* srq, ibv_recv_wr* chain) {
  ibv_recv_wr* refused = nullptr;
  const int error = ibv_post_srq_recv(srq, chain, &refused);
  return error == 0 ? PostResult::kPosted : RefusalResult(error, refused == chain);
}

// Return a work request filled in for one sge (nullptr: no bytes). The caller links requests
// (.next) and gives the flags: IBV_SEND_SIGNALED, and IBV_SEND_INLINE for SENDs that fit. The sge
// must live until the post.
inline ibv_send_wr MakeRequest(ibv_wr_opcode opcode, uint64_t wr_id, ibv_sge* sge, unsigned flags) {
  ibv_send_wr request{};
  request.wr_id = wr_id;
  request.sg_list = sge;
  request.num_sge = sge == nullptr ? 0 : 1;
  request.opcode = opcode;
  request.send_flags = flags;
  return request;
}
inline ibv_send_wr SendRequest(uint64_t wr_id, ibv_sge* sge, unsigned flags) {
  return MakeRequest(IBV_WR_SEND, wr_id, sge, flags);
}
inline ibv_send_wr ReadRequest(uint64_t wr_id, ibv_sge* sge, uint64_t remote_address, uint32_t rkey,
                               unsigned flags) {
  ibv_send_wr request = MakeRequest(IBV_WR_RDMA_READ, wr_id, sge, flags);
  request.wr.rdma = {remote_address, rkey};
  return request;
}
// The sge's 8 bytes receive the previous value of the word, in this host's byte order.
inline ibv_send_wr CompareAndSwapRequest(uint64_t wr_id, ibv_sge* sge, uint64_t remote_address,
                                         uint32_t rkey, uint64_t expected, uint64_t desired,
                                         unsigned flags) {
  ibv_send_wr request = MakeRequest(IBV_WR_ATOMIC_CMP_AND_SWP, wr_id, sge, flags);
  request.wr.atomic.remote_addr = remote_address;
  request.wr.atomic.compare_add = expected;
  request.wr.atomic.swap = desired;
  request.wr.atomic.rkey = rkey;
  return request;
}

// Moves the queue pair to the error state: everything in flight is flushed as completions, and
// nothing more goes out. This is not a DMA fence: memory may be reused only once the flushes were
// polled.
absl::Status MoveToError(ibv_qp* qp);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_QUEUE_PAIR_H_
