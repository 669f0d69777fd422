#ifndef GANNET_SERVER_RPC_SEND_QUEUE_USE_H_
#define GANNET_SERVER_RPC_SEND_QUEUE_USE_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/data_path_checks.h"

namespace gannet {

// The resource that a work request keeps busy until it completed.
struct Resource {
  enum class Kind : uint8_t { kNothing, kReplyBuffer, kStaging, kRead, kTierGet };
  Kind kind = Kind::kNothing;
  uint32_t index = 0;  // of the buffer in its pool; of a READ, its bytes; of a GET, its number
};

// Keeps account of one queue pair's send queue: how many of its places are taken, and which
// resource each of its work requests keeps busy.
//
// A queue pair completes its sends in order. A place is free only after the completion of a
// *signaled* work request at or behind it was polled. So each work request has a position, counted
// from 1, and a completion means that everything up to its position is done. One place is kept for
// the drain that Connection::BeginDrain posts.
class SendQueueUse {
 public:
  // At least one of so many work requests is signaled.
  static constexpr uint32_t kSignalEvery = 32;

  // The first work request gets the position after `start`.
  explicit SendQueueUse(uint32_t places, uint32_t start = 0)
      : places_(places),
        signal_every_(std::clamp<uint32_t>(places / 3, 1, kSignalEvery)),
        ring_(std::bit_ceil(places)),
        mask_(std::bit_ceil(places) - 1),
        last_(start),
        full_at_(start + places - 1),
        signal_at_(start + signal_every_),
        done_(start) {}

  bool HasRoom() const { return last_ != full_at_; }
  uint32_t in_queue() const { return last_ - done_; }
  // All work requests up to this position completed.
  uint32_t done() const { return done_; }
  // Returns true if a signaled work request has not completed yet. Otherwise nothing in the queue
  // will report whether it completed.
  bool AwaitsSignaled() const {
    return static_cast<int32_t>(signal_at_ - signal_every_ - done_) > 0;
  }
  // Makes the next work request signaled. REQUIRES: !AwaitsSignaled().
  void SignalNext() {
    GANNET_CHECK_DATA_PATH(!AwaitsSignaled(), "a signaled work request is under way");
    signal_at_ = last_ + 1;
  }

  size_t MemoryBytes() const { return ring_.capacity() * sizeof(Resource); }

  struct Place {
    uint32_t position;
    bool signaled;  // the work request must be signaled
  };
  // Takes a place. REQUIRES: HasRoom().
  Place Add(Resource resource, bool signaled) {
    GANNET_CHECK_DATA_PATH(HasRoom(), "send queue overrun");
    ++last_;
    if (resource.kind != Resource::Kind::kNothing) {
      ring_[last_ & mask_] = resource;
      ++busy_;
    }
    if (last_ == signal_at_) [[unlikely]]
      signaled = true;
    if (signaled) signal_at_ = last_ + signal_every_;
    return {last_, signaled};
  }

  template <class Release>
  void CompleteAll(Release&& release) {
    Complete(last_, release);
  }

  // Marks everything up to `position` as done, and calls release(Resource) for each busy resource,
  // in order. A position that is not in the queue counts as the last one. No completion can have
  // such a position.
  template <class Release>
  void Complete(uint32_t position, Release&& release) {
    // Compare differences, because positions wrap.
    if (position - done_ > last_ - done_) position = last_;
    while (busy_ > 0 && done_ != position) {
      SetDone(done_ + 1);
      const Resource resource = std::exchange(ring_[done_ & mask_], {});
      if (resource.kind == Resource::Kind::kNothing) continue;
      --busy_;
      release(resource);
    }
    SetDone(position);
  }

 private:
  void SetDone(uint32_t position) {
    done_ = position;
    full_at_ = position + places_ - 1;
  }

  const uint32_t places_;
  const uint32_t signal_every_;  // so that a short queue is never full of unsignaled requests
  // By position. Its size is a power of two, so that positions may wrap. Entries that keep nothing
  // busy are always kNothing, so Add need not write them.
  std::vector<Resource> ring_;
  const uint32_t mask_;
  uint32_t last_;       // position of the newest work request
  uint32_t full_at_;    // the value of last_ when only the drain's place is left
  uint32_t signal_at_;  // the position that must be signaled if none before it is
  uint32_t done_;       // all up to this position completed
  uint32_t busy_ = 0;   // work requests in the queue that keep a resource busy
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SEND_QUEUE_USE_H_
