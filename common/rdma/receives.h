#ifndef GANNET_COMMON_RDMA_RECEIVES_H_
#define GANNET_COMMON_RDMA_RECEIVES_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/rdma/queue_pair.h"

namespace gannet {

// The receives of one queue, a queue pair's own or a shared one: a place for a message each, whose
// work request is filled in once. The states of a place:
//
//   posted -> received (Message) -> recycled -> posted again, by Post
//
// Owner thread only.
class Receives {
 public:
  explicit Receives(uint32_t places_max) {
    sges_.reserve(places_max);
    requests_.reserve(places_max);
  }

  // Adds a place, which is recycled at first. REQUIRES: there are fewer than `places_max`, since
  // the work requests point to each other.
  void Add(uint64_t wr_id, const ibv_sge& sge) {
    GANNET_CHECK(requests_.size() < requests_.capacity(), "no more receives than planned");
    sges_.push_back(sge);
    requests_.push_back({.wr_id = wr_id, .next = nullptr, .sg_list = &sges_.back(), .num_sge = 1});
    Recycle(count() - 1);
  }
  uint32_t count() const { return static_cast<uint32_t>(requests_.size()); }

  // The first bytes of a place. REQUIRES: at most as many as the place has.
  std::span<const std::byte> Message(uint32_t place, uint32_t bytes) const {
    return {reinterpret_cast<const std::byte*>(sges_[place].addr), bytes};
  }

  // Its message was looked at. The bytes stay until Post. REQUIRES: it was received, and was not
  // recycled since.
  void Recycle(uint32_t place) {
    requests_[place].next = recycled_;
    recycled_ = &requests_[place];
    ++recycled_count_;
  }
  uint32_t recycled() const { return recycled_count_; }
  // Posts the recycled places to `queue` (ibv_qp or ibv_srq) with one doorbell. Returns false if
  // the device refuses them: then nothing more can be received.
  template <class Queue>
  bool Post(Queue* queue) {
    recycled_count_ = 0;
    ibv_recv_wr* const chain = std::exchange(recycled_, nullptr);
    return chain == nullptr || PostReceive(queue, chain) == PostResult::kPosted;
  }

 private:
  // By place. Recycling changes only the links.
  std::vector<ibv_sge> sges_;
  std::vector<ibv_recv_wr> requests_;
  ibv_recv_wr* recycled_ = nullptr;  // a chain, the last recycled first
  uint32_t recycled_count_ = 0;
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_RECEIVES_H_
