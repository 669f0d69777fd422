#ifndef GANNET_CLIENT_SESSION_SEND_CHAIN_H_
#define GANNET_CLIENT_SESSION_SEND_CHAIN_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "client/session/client_connection.h"
#include "client/session/queued_read.h"
#include "common/base/check.h"
#include "common/base/data_path_checks.h"
#include "common/rdma/queue_pair.h"

namespace gannet {

// Work requests for one connection, to be posted with one doorbell. The last one of a chain is
// signaled, so that a completion tells that all are done. So is every `signal_every`-th one, for
// callers who can go on with the first before the last is done.
//
// Nearly all work requests are READs of the region into the operations' own buffers. So the entries
// of an empty chain are such READs already; only id, addresses and length are filled in later.
//
// One owner thread. It cannot be copied, since its work requests point to each other.
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

  // The connection that it is for. Valid while the chain is not empty.
  ClientConnection* connection() const { return connection_; }
  uint32_t size() const { return static_cast<uint32_t>(next_ - entries_.data()); }
  bool empty() const { return next_ == entries_.data(); }
  // How many more work requests fit into it, and into the connection's send queue.
  uint32_t room() const { return std::min(kMax - size(), connection_->work.room()); }
  bool NextIsSignaled() const { return size() % signal_every_ == signal_every_ - 1; }

  // Sets where the region is, and the lkey of the operations' own buffers. REQUIRES: empty.
  void SetRegion(uint64_t address, uint32_t rkey, uint32_t lkey);
  // REQUIRES: the chain is empty, or is for this connection already.
  void Open(ClientConnection* connection) {
    GANNET_CHECK_DATA_PATH(empty() || connection == connection_,
                           "the chain is for another connection");
    connection_ = connection;
    first_id_ = connection->SendId(0);
    reads_end_ = next_;
  }
  void Clear() {
    if (!empty()) ForSignaled([](ibv_send_wr* request) { request->send_flags &= ~kSignaled; });
    if (has_others_) {
      MakeReads(size());
    } else if (has_lent_) {
      for (Entry* entry = entries_.data(); entry != next_; ++entry) entry->sge.lkey = own_lkey_;
    }
    has_lent_ = false;
    next_ = reads_end_ = entries_.data();
    pieces_used_ = 0;
  }

  // Allows `n` READs to follow, as far as there is room, until Open, Add or Clear.
  void AllowReads(uint32_t n) { reads_end_ = next_ + std::min(n, room()); }
  // Allows one READ by the connection's own keys, which differ from those of SetRegion.
  void AllowReadByKeys() {
    AllowReads(1);
    next_->request.wr.rdma.rkey = connection_->region_rkey;
    next_->sge.lkey = connection_->op_lkey;
  }
  bool TakesRead() const { return next_ != reads_end_; }
  // REQUIRES: TakesRead().
  void AddRead(const QueuedRead& read) {
    GANNET_CHECK_DATA_PATH(TakesRead(), "the chain takes no READ");
    Entry& entry = *next_++;
    entry.sge.addr = reinterpret_cast<uint64_t>(read.local);
    entry.sge.length = read.bytes;
    if (read.keys != nullptr) [[unlikely]] {
      entry.sge.lkey = read.keys->lkeys[connection_->domain];
      has_lent_ = true;
    }
    entry.request.wr_id = first_id_ + connection_->work.Push({read.op, InFlightWork::Kind::kRead});
    entry.request.wr.rdma.remote_addr = region_address_ + read.offset;
  }
  // Returns whether a READ into so many pieces fits.
  bool TakesPieces(uint32_t n) const { return n == 1 || pieces_used_ + n <= pieces_.size(); }
  // REQUIRES: TakesRead(), TakesPieces(pieces.size()).
  void AddReadInto(uint32_t op, uint64_t offset, std::span<const LocalPiece> pieces);
  // Takes all of `request` except wr_id, sg_list and next. REQUIRES: room() > 0.
  void Add(InFlightWork::Work work, const ibv_send_wr& request, const ibv_sge& sge) {
    GANNET_CHECK(room() > 0, "send queue overrun");
    has_others_ = true;
    Entry& entry = *next_++;
    reads_end_ = next_;
    entry.request = request;
    PointOn(&entry);
    entry.sge = sge;
    entry.request.wr_id = first_id_ + connection_->work.Push(work);
  }

  // Adds a SEND, which is no operation's: that goes on with the reply. REQUIRES: room() > 0.
  void AddMessage(const std::byte* data, uint32_t bytes) {
    const ClientConnection& to = *connection_;
    const unsigned inline_flag = bytes <= to.inline_bytes() ? unsigned{IBV_SEND_INLINE} : 0u;
    Add({0, InFlightWork::Kind::kMessage}, SendRequest(0, nullptr, inline_flag | to.send_flags()),
        {reinterpret_cast<uint64_t>(data), bytes, to.message_lkey});
  }

  // Signals and posts. The chain is empty afterwards. REQUIRES: not empty.
  PostResult Post() {
    GANNET_CHECK_DATA_PATH(!empty(), "there is nothing to post");
    Signal();
    ibv_send_wr& last = next_[-1].request;
    last.next = nullptr;
    const PostResult result = PostSend(connection_->qp(), &entries_[0].request);
    last.next = &next_->request;
    Clear();
    return result;
  }

  // For Post, and tests. REQUIRES: not empty.
  void Signal() {
    GANNET_CHECK_DATA_PATH(!empty(), "there is nothing to signal");
    ForSignaled([](ibv_send_wr* request) { request->send_flags |= kSignaled; });
  }
  const ibv_send_wr& request(uint32_t i) const { return entries_[i].request; }

 private:
  static constexpr unsigned kSignaled = IBV_SEND_SIGNALED;

  struct Entry {
    ibv_send_wr request;
    ibv_sge sge;
  };

  // Makes the first n entries READs, whatever they were.
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
  ClientConnection* connection_ = nullptr;
  Entry* next_ = nullptr;       // the next to be filled in
  Entry* reads_end_ = nullptr;  // READs are taken up to here
  bool has_others_ = false;     // it has work requests other than READs into one piece
  bool has_lent_ = false;       // it has READs into memory other than own buffers
  uint32_t region_rkey_ = 0;
  uint32_t own_lkey_ = 0;
  uint64_t region_address_ = 0;
  uint64_t first_id_ = 0;                  // the work-request id of the send queue's position 0
  std::array<Entry, kMax + 1> entries_{};  // the last one is never posted
  uint32_t pieces_used_ = 0;
  std::array<ibv_sge, 64> pieces_;  // of READs into several pieces
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SEND_CHAIN_H_
