#ifndef GANNET_SERVER_RPC_RECEIVE_BUFFERS_H_
#define GANNET_SERVER_RPC_RECEIVE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/data_path_checks.h"
#include "common/protocol/limits.h"
#include "common/rdma/queue_pair.h"
#include "common/rdma/receives.h"
#include "server/rpc/message_buffers.h"

namespace gannet {

// The shared receive queue of a worker on one rail, and its buffers. It is shared so that memory
// does not grow with clients, beyond `count`. With few clients it has less (Reserve). Repost posts
// recycled buffers again once they are worth a call.
//
// No request holds its buffer beyond the Poll that took it. A request that takes longer copies what
// it needs. Owner thread only.
class ReceiveBuffers {
 public:
  // At most `count` receives, of which some are posted.
  static absl::StatusOr<std::unique_ptr<ReceiveBuffers>> Create(ibv_pd* pd, uint32_t count);

  ibv_srq* srq() const { return srq_.get(); }
  uint32_t count() const { return buffers_.count(); }  // of the receives that there are now

  // Posts more receives until there are enough for so many requests at once, or all `count`.
  // Returns false if the device refused to post: then the worker can receive no more. If it refuses
  // only more memory, there are fewer receives, and peers' requests wait now and then. REQUIRES: no
  // received message is still to be looked at.
  bool Reserve(uint64_t requests);

  // REQUIRES: the slot was received and not yet posted again; bytes <= kMessageBytesMax.
  std::span<const std::byte> Message(uint32_t slot, uint32_t bytes) const {
    GANNET_CHECK_DATA_PATH(bytes <= kMessageBytesMax, "a message is longer than its buffer");
    return {buffers_.At(slot), bytes};
  }
  // The bytes of a recycled slot stay until Repost.
  void Recycle(uint32_t slot) { receives_.Recycle(slot); }
  // Returns true if enough buffers are recycled for a doorbell. So a few receives less than there
  // are may be posted at any time.
  bool due() const { return receives_.recycled() >= repost_at_; }
  // Posts the recycled buffers. Returns false if the device refused them: then the worker can
  // receive no more. Call it when it is due.
  bool Repost();
  uint64_t posts() const { return posts_; }  // doorbells so far

 private:
  static constexpr uint32_t kRepostAt = 64;

  ReceiveBuffers() = default;
  // Recycles the buffers that were registered since.
  void AddRegistered();

  MessageBuffers buffers_;
  Handle<ibv_srq> srq_;
  uint32_t repost_at_ = 0;
  uint64_t posts_ = 0;
  Receives receives_{0};  // by slot
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_RECEIVE_BUFFERS_H_
