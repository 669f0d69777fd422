#ifndef GANNET_SERVER_GROUP_REPLICA_UNANSWERED_BEACONS_H_
#define GANNET_SERVER_GROUP_REPLICA_UNANSWERED_BEACONS_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "common/base/check.h"

namespace gannet {

// The beacons that one backup was sent and has not answered. A backup that is busy gets no more
// than it has receives for: otherwise its link would break.
//
// It counts the beacons that *this* backup was sent. Sequences go on while it is sent none, so how
// far its last answer is behind the newest sequence says nothing: a backup that was busy for long
// would never be sent a beacon again.
//
// One owner thread.
class UnansweredBeacons {
 public:
  explicit UnansweredBeacons(size_t max) : max_(max) {}

  bool MaySend() const { return sent_.size() < max_; }
  // REQUIRES: sequences grow.
  void OnSend(uint64_t sequence) {
    GANNET_CHECK(sent_.empty() || sent_.back() < sequence, "sequences grow");
    sent_.push_back(sequence);
  }
  // An answer comes behind those to all earlier beacons, so it counts for these, too.
  void OnAnswer(uint64_t sequence) {
    while (!sent_.empty() && sent_.front() <= sequence) sent_.pop_front();
  }

 private:
  const size_t max_;
  std::deque<uint64_t> sent_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_UNANSWERED_BEACONS_H_
