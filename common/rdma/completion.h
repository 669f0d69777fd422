#ifndef GANNET_COMMON_RDMA_COMPLETION_H_
#define GANNET_COMMON_RDMA_COMPLETION_H_

#include <infiniband/verbs.h>
#include <sched.h>

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/rdma/handle.h"

namespace gannet {

// A completion queue that many queue pairs share, with a channel to sleep on.
//
// 1. It cannot overrun. Whoever may have work requests in flight first reserves room for their
//    completions (a queue pair: its send and receive sizes; an SRQ: its size).
// 2. To sleep: Poll until it is empty; Arm; Poll once more, because completions from before Arm
//    wake nobody; wait until fd() is readable; TakeEvent; start again.
// 3. Each event is acknowledged as it is taken, so destruction never waits.
// 4. On the kernel's software devices an empty Poll yields the core, because these devices transmit
//    on threads that share it with us. Next to a poller that never yields, siw's threads starve,
//    and a READ takes 4 ms, a scheduler's tick, instead of some microseconds.
//
// Owner thread only.
class CompletionQueue {
 public:
  // Cuts `entries` to the device's limit; capacity() tells the result.
  static absl::StatusOr<std::unique_ptr<CompletionQueue>> Create(ibv_context* verbs,
                                                                 uint32_t entries,
                                                                 bool with_channel);

  // Fills in at most out.size() completions and returns their number. If the device lost the queue,
  // returns 0, and broken() is true from then on.
  size_t Poll(std::span<ibv_wc> out) {
    const int n = ibv_poll_cq(cq_.get(), static_cast<int>(out.size()), out.data());
    if (n > 0) return static_cast<size_t>(n);
    broken_ |= n < 0;
    if (yields_) sched_yield();
    return 0;
  }
  bool broken() const { return broken_; }

  // Reserves room for so many more completions. ResourceExhausted: the queue has no room.
  absl::Status Reserve(uint32_t entries);
  void Release(uint32_t entries);
  uint32_t capacity() const { return capacity_; }
  uint32_t reserved() const { return reserved_; }

  // The next three need a queue that was made with a channel.
  absl::Status Arm();
  // Non-blocking; readable while an event is there.
  int fd() const { return channel_->fd; }
  // Takes an event, if there is one. Each Arm brings one at most, so to look for another costs
  // system calls for nothing. One that is left wakes the next sleep once too early.
  void TakeEvent();

  ibv_cq* get() const { return cq_.get(); }

 private:
  CompletionQueue() = default;

  Handle<ibv_comp_channel> channel_;  // before cq_, which refers to it
  Handle<ibv_cq> cq_;
  uint32_t capacity_ = 0;
  uint32_t reserved_ = 0;
  bool broken_ = false;
  bool yields_ = false;
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_COMPLETION_H_
