#ifndef GANNET_CLIENT_SESSION_SEND_CHAIN_H_
#define GANNET_CLIENT_SESSION_SEND_CHAIN_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "client/session/link.h"
#include "common/base/check.h"
#include "common/rdma/queue_pair.h"

namespace gannet {

// A READ of the region to be posted.
struct QueuedRead {
  std::byte* local;
  uint64_t offset;
  uint32_t op;
  uint32_t bytes;
  uint32_t lkey;
};

// Work requests for one queue pair, to be posted with one doorbell. A chain's last is signaled, so
// that its end is always heard of; and every so many-th, for callers to whom the first is of use
// before the last.
//
// Whatever of a work request is the same in all of them is filled in once.
//
// One owner thread. Not to be copied: its work requests point to each other.
class SendChain {
 public:
  static constexpr uint32_t kMax = 128;

  // `signal_every`: at least 1.
  explicit SendChain(uint32_t signal_every) : signal_every_(signal_every) {
    for (uint32_t i = 0; i < kMax; ++i) Preset(i);
  }
  SendChain(const SendChain&) = delete;
  SendChain& operator=(const SendChain&) = delete;

  // The queue pair that it is for; valid while not empty.
  Link* link() const { return link_; }
  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // How many more work requests fit, into it and into its queue pair.
  uint32_t room() const { return std::min(kMax - size_, link_->work.room()); }
  bool NextIsSignaled() const { return size_ % signal_every_ == signal_every_ - 1; }

  // Where the region is.
  void SetRegion(uint64_t address, uint32_t rkey) {
    region_address_ = address;
    region_rkey_ = rkey;
  }
  // REQUIRES: empty, or it is for this queue pair already.
  void Open(Link* link) {
    link_ = link;
    first_id_ = link->SendId(0);
  }
  void Clear() { size_ = 0; }

  // REQUIRES, both: room() > 0.
  void AddRead(const QueuedRead& read) {
    const uint32_t i = size_++;
    const uint32_t position = link_->work.Push({read.op, InFlightWork::Kind::kRead});
    sges_[i] = {reinterpret_cast<uint64_t>(read.local), read.bytes, read.lkey};
    ibv_send_wr& request = requests_[i];
    request.wr_id = first_id_ + position;
    request.opcode = IBV_WR_RDMA_READ;
    request.send_flags = 0;
    request.wr.rdma.remote_addr = region_address_ + read.offset;
    request.wr.rdma.rkey = region_rkey_;
  }
  // Of `request` all but wr_id, the sge and the link to the next.
  void Add(InFlightWork::Work work, const ibv_send_wr& request, const ibv_sge& sge) {
    GANNET_CHECK(room() > 0, "send queue overrun");
    const uint32_t i = size_++;
    const uint32_t position = link_->work.Push(work);
    sges_[i] = sge;
    requests_[i] = request;
    Preset(i);
    requests_[i].wr_id = first_id_ + position;
  }

  // Signals and posts, and is empty then. REQUIRES: not empty.
  PostResult Post() {
    Signal();
    ibv_send_wr& last = requests_[size_ - 1];
    last.next = nullptr;
    const PostResult result = PostSend(link_->qp(), requests_.data());
    last.next = &last + 1;
    size_ = 0;
    return result;
  }

  // For Post, and tests.
  void Signal() {
    for (uint32_t i = signal_every_ - 1; i < size_; i += signal_every_) {
      requests_[i].send_flags |= IBV_SEND_SIGNALED;
    }
    requests_[size_ - 1].send_flags |= IBV_SEND_SIGNALED;
  }
  const ibv_send_wr& request(uint32_t i) const { return requests_[i]; }

 private:
  void Preset(uint32_t i) {
    requests_[i].next = &requests_[i + 1];
    requests_[i].sg_list = &sges_[i];
    requests_[i].num_sge = 1;
  }

  const uint32_t signal_every_;
  Link* link_ = nullptr;
  uint32_t size_ = 0;
  uint32_t region_rkey_ = 0;
  uint64_t region_address_ = 0;
  uint64_t first_id_ = 0;  // the work-request id of the queue pair's position 0
  std::array<ibv_send_wr, kMax + 1> requests_{};  // the one more is never posted
  std::array<ibv_sge, kMax> sges_{};
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SEND_CHAIN_H_
