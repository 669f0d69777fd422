#ifndef SOFTVERBS_QP_RECEIVE_QUEUE_H_
#define SOFTVERBS_QP_RECEIVE_QUEUE_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "softverbs/base/verbs_limits.h"

namespace softverbs {

// A posted receive, copied out when a message takes it.
struct ReceiveWqe {
  uint64_t wr_id;
  uint32_t sge_count;
  ibv_sge sges[kMaxSge];
};

// The receives of a queue pair or of a shared receive queue. Not thread safe: guarded by its
// owner's lock.
class ReceiveQueue {
 public:
  void Init(uint32_t max_wr, uint32_t max_sge) {
    const uint32_t places = std::bit_ceil(std::max(max_wr, 1u));
    mask_ = places - 1;
    max_wr_ = max_wr;
    max_sge_ = max_sge;
    heads_ = std::make_unique<Head[]>(places);
    sges_ = std::make_unique<ibv_sge[]>(size_t{places} * std::max(max_sge, 1u));
  }

  uint32_t max_wr() const { return max_wr_; }
  uint32_t max_sge() const { return max_sge_; }
  uint32_t size() const { return tail_ - head_; }
  void Clear() { head_ = tail_; }

  // Returns 0 or an errno value, as post_recv does.
  int Post(const ibv_recv_wr& wr) {
    if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > max_sge_) return EINVAL;
    if (size() >= max_wr_) return ENOMEM;
    const uint32_t place = tail_ & mask_;
    heads_[place] = {wr.wr_id, static_cast<uint32_t>(wr.num_sge)};
    std::copy_n(wr.sg_list, wr.num_sge, &sges_[size_t{place} * max_sge_]);
    ++tail_;
    return 0;
  }

  // Takes the oldest receive. Returns false if there is none.
  bool Take(ReceiveWqe* wqe) {
    if (size() == 0) return false;
    const uint32_t place = head_++ & mask_;
    wqe->wr_id = heads_[place].wr_id;
    wqe->sge_count = heads_[place].sge_count;
    std::copy_n(&sges_[size_t{place} * max_sge_], wqe->sge_count, wqe->sges);
    return true;
  }

 private:
  struct Head {
    uint64_t wr_id;
    uint32_t sge_count;
  };

  uint32_t mask_ = 0;
  uint32_t max_wr_ = 0;
  uint32_t max_sge_ = 0;
  uint32_t head_ = 0;  // oldest; counts up for ever, as tail_
  uint32_t tail_ = 0;
  std::unique_ptr<Head[]> heads_;
  std::unique_ptr<ibv_sge[]> sges_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_QP_RECEIVE_QUEUE_H_
