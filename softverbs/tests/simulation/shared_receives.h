#ifndef SOFTVERBS_TESTS_SIMULATION_SHARED_RECEIVES_H_
#define SOFTVERBS_TESTS_SIMULATION_SHARED_RECEIVES_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>

#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {

// A shared receive queue with an oracle of what the device owes it. The receives of all its queue
// pairs complete in one CQ.
//
// 1. Messages take receives in the order in which these were posted, whichever queue pair a message
//    came to.
// 2. Nothing else takes one: errors of the queue pairs flush none of them.
// 3. The limit event comes with the message that leaves fewer receives than the limit. It comes
//    once, and disarms the limit.
// 4. Once all is quiet, the queue has room for as many as the model says, and for no more.
//
// If completions are delayed, they do not show the order and the time of what they complete. Then
// rule 1 holds for each queue pair (its end checks that), and rule 3 only says that no event comes
// unarmed.
class SharedReceives {
 public:
  static constexpr uint32_t kDepth = 8;
  static constexpr size_t kSlot = 4096;

  SharedReceives(ibv_context* context, ibv_pd* pd, bool completions_delayed);

  ibv_srq* srq() const { return srq_.get(); }
  ibv_cq* cq() const { return cq_.get(); }
  // Receives that are posted and not known to be taken.
  size_t posted() const { return posted_.size(); }

  // Posts a receive. Expects the device to refuse it if the queue is full.
  void Post();
  // Makes sure that `messages` find receives, as far as the queue has room.
  void Feed(uint64_t messages);
  void Arm(uint32_t limit);
  // Returns the message of a completion.
  const uint8_t* Take(const ibv_wc& wc);
  void TakeLimitEvent();
  // REQUIRES: all completions and events of everything that happened so far were taken.
  void CheckLimit();
  // A queue pair was destroyed, so completions that it had delayed are gone.
  void TakeLoss() { lost_ = completions_delayed_; }
  // REQUIRES: nothing is left to happen, and everything was polled. Leaves the queue full.
  void CheckQuiet();

  uint64_t limits_reached() const { return limit_events_; }

 private:
  // 64 times as many as can be posted, so that none is used again while its completion is on its
  // way.
  static constexpr size_t kSlots = 64 * size_t{kDepth};

  int PostNext();
  // Fills the queue. Returns how many receives that took.
  uint32_t Fill();
  const uint8_t* Slot(uint64_t id) const { return memory_.data() + id % kSlots * kSlot; }

  const bool completions_delayed_;
  Owned<ibv_cq> cq_;
  TestMemory memory_;
  Owned<ibv_mr> mr_;
  Owned<ibv_srq> srq_;

  std::deque<uint64_t> posted_;
  uint64_t next_ = 0;
  bool lost_ = false;   // what is in posted_ may have been taken long ago
  uint32_t limit_ = 0;  // 0: not armed
  uint64_t limit_events_ = 0, limit_events_due_ = 0;
};

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_SIMULATION_SHARED_RECEIVES_H_
