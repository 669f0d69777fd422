#ifndef GANNET_SERVER_LOG_STREAM_RING_TAIL_H_
#define GANNET_SERVER_LOG_STREAM_RING_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "server/log/stream/ring_record.h"

namespace gannet {

// Records that a backup has received and not applied, in its own memory. They are copied out of a
// ring once, after its primary was fenced, so nothing that comes later can change them.
//
// Thread safety: one thread.
class RingTail {
 public:
  // The record of a tail, and its LSN and the LSN behind it.
  using Use = absl::FunctionRef<void(const RingRecord& record, uint64_t lsn, uint64_t end)>;

  explicit RingTail(uint64_t lsn) : begin_(lsn), end_(lsn) {}

  // Drops all records. It is empty then, and begins at `lsn`. Unlike an assignment, it allocates
  // nothing: a backup does this each time that it has applied something.
  void BeginAt(uint64_t lsn) {
    entries_.clear();
    begin_ = end_ = lsn;
  }
  // Adds the record at end(). REQUIRES: it was proven to be whole.
  void Add(std::span<const std::byte> bytes, const RingRecordPlace& place);
  // Calls `use` for the first record, and drops it. REQUIRES: begin() < end().
  void TakeFirst(Use use);
  // Calls `use` for each record that ends at `limit` or before, and drops it.
  void Take(uint64_t limit, Use use);
  // Drops each record that ends at `limit` or before.
  void Drop(uint64_t limit);
  // Calls `use` for each record.
  void ForEach(Use use) const;
  // Lays a newer stream's records over these, LSN by LSN. What lies before or behind them is kept.
  // Returns false if a record of `this` crosses the begin or the end of `newer`: then the two
  // streams disagree, and `this` did not change. REQUIRES: newer.begin() <= end().
  bool LayOver(RingTail newer);

  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }

 private:
  struct Entry {
    RingRecordPlace place;
    std::vector<std::byte> bytes;
  };

  uint64_t begin_;
  uint64_t end_;
  std::deque<Entry> entries_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_STREAM_RING_TAIL_H_
