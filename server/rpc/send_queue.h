#ifndef GANNET_SERVER_RPC_SEND_QUEUE_H_
#define GANNET_SERVER_RPC_SEND_QUEUE_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "common/base/check.h"

namespace gannet {

// What a work request keeps busy until it completed.
struct Resource {
  enum class Kind : uint8_t { kNothing, kReplyBuffer, kStaging, kRead };
  Kind kind = Kind::kNothing;
  uint32_t index = 0;  // of the buffer in its pool
};

// The account of one queue pair's send queue: how many of its places are taken, and what each of
// the work requests in it keeps busy.
//
// A queue pair completes its sends in order, and a place is free only once a *signaled* work
// request at or behind it was polled: so each work request has a position, counted from 1, and a
// completion says that everything up to its position is done. One place is kept for the drain that
// Connection::BeginClose posts.
class SendQueue {
 public:
  // At least every this many work requests, one is signaled.
  static constexpr uint32_t kSignalEvery = 32;

  // The first work request gets the position after `start`.
  explicit SendQueue(uint32_t places, uint32_t start = 0)
      : places_(places),
        signal_every_(std::clamp<uint32_t>(places / 3, 1, kSignalEvery)),
        ring_(std::bit_ceil(places)),
        mask_(std::bit_ceil(places) - 1),
        last_(start),
        done_(start) {}

  bool HasRoom(uint32_t wrs) const { return in_queue() + wrs + 1 <= places_; }
  uint32_t in_queue() const { return last_ - done_; }

  size_t MemoryBytes() const { return ring_.capacity() * sizeof(Resource); }

  // Takes a place; returns its position. REQUIRES: HasRoom(1).
  uint32_t Add(Resource resource) {
    GANNET_CHECK(HasRoom(1), "send queue overrun");
    ++last_;
    ring_[last_ & mask_] = resource;
    busy_ += resource.kind != Resource::Kind::kNothing;
    return last_;
  }
  // True when the next work request to be posted should be signaled; call once for each.
  bool ShouldSignal(bool wanted) {
    if (!wanted && ++unsignaled_ < signal_every_) return false;
    unsignaled_ = 0;
    return true;
  }

  template <class Release>
  void CompleteAll(Release&& release) {
    Complete(last_, release);
  }

  // Everything up to `position` is done: calls release(Resource) for each that keeps
  // something busy, in order. Positions that
  // are not in the queue (hostile or late completions cannot make any) are ignored.
  template <class Release>
  void Complete(uint32_t position, Release&& release) {
    // Differences, not values: positions wrap.
    if (position - done_ > last_ - done_) position = last_;
    if (busy_ == 0) done_ = position;  // nothing but headers
    while (done_ != position) {
      ++done_;
      const Resource resource = ring_[done_ & mask_];
      if (resource.kind == Resource::Kind::kNothing) continue;
      --busy_;
      release(resource);
    }
  }

 private:
  const uint32_t places_;
  const uint32_t signal_every_;  // so that a short queue is never full of unsignaled requests
  std::vector<Resource> ring_;   // by position; a power of two, so that positions may wrap
  const uint32_t mask_;
  uint32_t last_;      // position of the newest work request
  uint32_t done_;      // all up to here completed
  uint32_t busy_ = 0;  // of those in the queue, keep something busy
  uint32_t unsignaled_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SEND_QUEUE_H_
