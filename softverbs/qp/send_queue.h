#ifndef SOFTVERBS_QP_SEND_QUEUE_H_
#define SOFTVERBS_QP_SEND_QUEUE_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "softverbs/fault/faults.h"
#include "softverbs/qp/scatter_gather.h"

namespace softverbs {

// A posted send request. Its scatter/gather list or its inline data follows it in memory.
struct SendWqe {
  uint64_t wr_id;
  uint64_t remote_addr;  // a bind: the address of the window
  uint64_t compare_add;  // a bind: its length
  uint64_t swap;         // a bind: its rights, and above them the key of the region
  uint32_t rkey;         // a bind: its new key; an invalidation: its key
  uint32_t imm;          // SEND with invalidate: the peer's key
  uint32_t length;       // of the whole message
  uint32_t psn;          // valid once its transmission began
  uint32_t received;     // bytes of a READ's answer
  uint32_t send_flags;
  ibv_wr_opcode opcode;
  ibv_wc_status error;  // found at post, reported when its turn comes
  uint32_t sge_count;
  fault::RequestFaults faults;

  ibv_sge* sges() { return reinterpret_cast<ibv_sge*>(this + 1); }
  SgeList local() { return {sges(), sge_count}; }
  uint8_t* inline_data() { return reinterpret_cast<uint8_t*>(this + 1); }
  bool is_inline() const { return (send_flags & IBV_SEND_INLINE) != 0; }
  // Returns whether the request is answered with data rather than acknowledged.
  bool is_fetch() const {
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
  // Returns whether the adapter does this by itself: it concerns a memory window of this process.
  bool is_local() const { return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV; }
};

// The send queue. All counters count up for ever, with done <= next <= posted and posted - freed <=
// capacity. As on real adapters, a place is free again only when its completion or a later one was
// polled. Guarded by the queue pair's lock, except `freed`.
class SendQueue {
 public:
  void Init(uint32_t max_wr, uint32_t max_sge, uint32_t max_inline) {
    const uint32_t places = std::bit_ceil(std::max(max_wr, 1u));
    capacity_ = max_wr;
    mask_ = places - 1;
    const size_t tail = std::max<size_t>(max_sge * sizeof(ibv_sge), max_inline);
    stride_ = (sizeof(SendWqe) + tail + 63) / 64 * 64;
    storage_.reset(static_cast<uint8_t*>(aligned_alloc(64, stride_ * places)));
  }

  SendWqe& At(uint32_t index) {
    return *reinterpret_cast<SendWqe*>(storage_.get() + (index & mask_) * stride_);
  }
  uint32_t places() const { return mask_ + 1; }  // a power of two
  // Acquire pairs with the release in Cq's poll.
  bool Full() const { return posted - freed.load(std::memory_order_acquire) >= capacity_; }
  bool Idle() const { return done == posted; }
  void Reset() {
    posted = next = done = 0;
    freed.store(0, std::memory_order_relaxed);
  }

  uint32_t posted = 0;  // the next to be posted
  uint32_t next = 0;    // the next to be transmitted (or being transmitted)
  uint32_t done = 0;    // the oldest not completed
  std::atomic<uint32_t> freed{0};

 private:
  struct Free {
    void operator()(uint8_t* storage) const { free(storage); }
  };

  uint32_t capacity_ = 0;
  uint32_t mask_ = 0;
  size_t stride_ = 0;
  std::unique_ptr<uint8_t, Free> storage_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_QP_SEND_QUEUE_H_
