#ifndef GANNET_SERVER_LOG_STREAM_PROVEN_UPDATES_H_
#define GANNET_SERVER_LOG_STREAM_PROVEN_UPDATES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "server/log/stream/proven_records.h"
#include "server/log/stream/update_batch.h"
#include "server/log/stream/update_record.h"

namespace gannet {

// Updates that are proven and follow each other: those of one batch, or of records that have one
// each. They lie where they were copied to, so nobody makes a list of them.
class ProvenUpdates {
 public:
  // Gives each UpdateBody.
  class Iterator {
   public:
    Iterator(const std::byte* at, size_t gap) : at_(at), gap_(gap) {}
    const std::byte* operator*() const { return at_; }
    Iterator& operator++() {
      at_ += UpdateBodyBytesOf(at_) + gap_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const std::byte* at_;
    size_t gap_;
  };

  // The updates of a batch that ends at this LSN; 0: nobody asks for it.
  static ProvenUpdates OfBatch(std::span<const std::byte> bodies, uint64_t lsn_end = 0) {
    return ProvenUpdates(bodies.data(), bodies.data() + bodies.size(), 0,
                         lsn_end - bodies.size() - sizeof(UpdateBatchHeader), lsn_end);
  }
  // The records of an update each from one place in ProvenRecords to another, and their LSNs.
  static ProvenUpdates OfRecords(const std::byte* begin, const std::byte* end, uint64_t lsn,
                                 uint64_t lsn_end) {
    constexpr size_t kGap = sizeof(ProvenRecords::Head) + kUpdateBodyAt;
    return ProvenUpdates(begin + kGap, end + kGap, kGap, lsn, lsn_end);
  }

  Iterator begin() const { return Iterator(begin_, gap_); }
  Iterator end() const { return Iterator(end_, gap_); }
  bool empty() const { return begin_ == end_; }
  uint64_t lsn() const { return lsn_; }          // of the first one
  uint64_t lsn_end() const { return lsn_end_; }  // behind the last one
  // Drops the records that end at `limit` or before.
  void DropTo(uint64_t limit) {
    if (limit >= lsn_end_) begin_ = end_;
    while (!empty() && gap_ != 0 && lsn_ < limit) {
      const size_t bytes = UpdateBodyBytesOf(begin_);
      begin_ += bytes + gap_;
      lsn_ += kUpdateBodyAt + bytes;
    }
  }

 private:
  ProvenUpdates(const std::byte* begin, const std::byte* end, size_t gap, uint64_t lsn,
                uint64_t lsn_end)
      : begin_(begin), end_(end), gap_(gap), lsn_(lsn), lsn_end_(lsn_end) {}

  const std::byte* begin_;
  const std::byte* end_;
  size_t gap_;  // between a body and the next one
  uint64_t lsn_;
  uint64_t lsn_end_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_STREAM_PROVEN_UPDATES_H_
