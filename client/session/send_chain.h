#ifndef GANNET_CLIENT_SESSION_SEND_CHAIN_H_
#define GANNET_CLIENT_SESSION_SEND_CHAIN_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

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
  std::optional<uint32_t> lkey;  // of a lent buffer; none: `local` is the operation's own
};

// Work requests for one queue pair, to be posted with one doorbell. A chain's last is signaled, so
// that its end is always heard of; and every so many-th, for callers to whom the first is of use
// before the last.
//
// Nearly all are READs of the region into buffers of the operations' own, so an empty chain is one
// of these, of which only id, addresses and length are still to be filled in.
//
// One owner thread. Not to be copied: its work requests point to each other.
class SendChain {
 public:
  static constexpr uint32_t kMax = 128;

  // `signal_every`: at least 1.
  explicit SendChain(uint32_t signal_every) : signal_every_(signal_every) {
    next_ = reads_end_ = entries_.data();
    SetRegion(0, 0, 0);
  }
  SendChain(const SendChain&) = delete;
  SendChain& operator=(const SendChain&) = delete;

  // The queue pair that it is for; valid while not empty.
  Link* link() const { return link_; }
  uint32_t size() const { return static_cast<uint32_t>(next_ - entries_.data()); }
  bool empty() const { return next_ == entries_.data(); }
  // How many more work requests fit, into it and into its queue pair.
  uint32_t room() const { return std::min(kMax - size(), link_->work.room()); }
  bool NextIsSignaled() const { return size() % signal_every_ == signal_every_ - 1; }

  // Where the region is, and the lkey of the operations' own buffers. REQUIRES: empty.
  void SetRegion(uint64_t address, uint32_t rkey, uint32_t lkey);
  // REQUIRES: empty, or it is for this queue pair already.
  void Open(Link* link) {
    link_ = link;
    first_id_ = link->SendId(0);
    reads_end_ = next_;
  }
  void Clear() {
    if (!empty()) ForSignaled([](ibv_send_wr* request) { request->send_flags &= ~kSignaled; });
    if (has_others_) MakeReads(size());
    next_ = reads_end_ = entries_.data();
  }

  // So many READs may follow, as far as there is room, and until Open, Add or Clear.
  void AllowReads(uint32_t n) { reads_end_ = next_ + std::min(n, room()); }
  bool TakesRead() const { return next_ != reads_end_; }
  // REQUIRES: TakesRead().
  void AddRead(const QueuedRead& read) {
    Entry& entry = *next_++;
    entry.sge.addr = reinterpret_cast<uint64_t>(read.local);
    entry.sge.length = read.bytes;
    if (read.lkey.has_value()) [[unlikely]] {
      entry.sge.lkey = *read.lkey;
      has_others_ = true;
    }
    entry.request.wr_id = first_id_ + link_->work.Push({read.op, InFlightWork::Kind::kRead});
    entry.request.wr.rdma.remote_addr = region_address_ + read.offset;
  }
  // Of `request` all but wr_id, the sge and the link to the next. REQUIRES: room() > 0.
  void Add(InFlightWork::Work work, const ibv_send_wr& request, const ibv_sge& sge) {
    GANNET_CHECK(room() > 0, "send queue overrun");
    has_others_ = true;
    Entry& entry = *next_++;
    reads_end_ = next_;
    entry.request = request;
    PointOn(&entry);
    entry.sge = sge;
    entry.request.wr_id = first_id_ + link_->work.Push(work);
  }

  // Signals and posts, and is empty then. REQUIRES: not empty.
  PostResult Post() {
    Signal();
    ibv_send_wr& last = next_[-1].request;
    last.next = nullptr;
    const PostResult result = PostSend(link_->qp(), &entries_[0].request);
    last.next = &next_->request;
    Clear();
    return result;
  }

  // For Post, and tests. REQUIRES: not empty.
  void Signal() {
    ForSignaled([](ibv_send_wr* request) { request->send_flags |= kSignaled; });
  }
  const ibv_send_wr& request(uint32_t i) const { return entries_[i].request; }

 private:
  static constexpr unsigned kSignaled = IBV_SEND_SIGNALED;

  struct Entry {
    ibv_send_wr request;
    ibv_sge sge;
  };

  // Of the first n entries; what they were does not matter.
  void MakeReads(uint32_t n);
  static void PointOn(Entry* entry) {
    entry->request.next = &entry[1].request;
    entry->request.sg_list = &entry->sge;
    entry->request.num_sge = 1;
  }
  template <class F>
  void ForSignaled(F use) {
    for (uint32_t i = signal_every_; i < size(); i += signal_every_) use(&entries_[i - 1].request);
    use(&next_[-1].request);
  }

  const uint32_t signal_every_;
  Link* link_ = nullptr;
  Entry* next_ = nullptr;       // to be filled in
  Entry* reads_end_ = nullptr;  // READs are taken until there
  bool has_others_ = false;     // not only READs into own buffers
  uint32_t region_rkey_ = 0;
  uint32_t own_lkey_ = 0;
  uint64_t region_address_ = 0;
  uint64_t first_id_ = 0;                  // the work-request id of the queue pair's position 0
  std::array<Entry, kMax + 1> entries_{};  // the one more is never posted
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SEND_CHAIN_H_
