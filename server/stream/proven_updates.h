#ifndef GANNET_SERVER_STREAM_PROVEN_UPDATES_H_
#define GANNET_SERVER_STREAM_PROVEN_UPDATES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "server/stream/proven_records.h"

namespace gannet {

// The record of an update that is proven, in memory of its own.
struct ProvenUpdate {
  std::span<const std::byte> bytes;
  uint64_t item_checksum;
};

// Updates that are proven and follow each other. They lie where they were copied to, so nobody
// makes a list of them.
class ProvenUpdates {
 public:
  class Iterator {
   public:
    explicit Iterator(const std::byte* at) : at_(at) {}
    ProvenUpdate operator*() const {
      const ProvenRecords::Head head = ProvenRecords::HeadOf(at_);
      return {.bytes = {at_ + sizeof(head), head.bytes}, .item_checksum = head.item_checksum};
    }
    Iterator& operator++() {
      at_ = ProvenRecords::Behind(at_, ProvenRecords::HeadOf(at_).bytes);
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const std::byte* at_;
  };

  // The updates from one place in the records to another, and their LSNs.
  struct Range {
    const std::byte* begin;
    const std::byte* end;
    size_t size;
    uint64_t lsn;      // of the first one
    uint64_t lsn_end;  // behind the last one
  };
  explicit ProvenUpdates(const Range& range) : range_(range) {}

  Iterator begin() const { return Iterator(range_.begin); }
  Iterator end() const { return Iterator(range_.end); }
  size_t size() const { return range_.size; }
  uint64_t lsn() const { return range_.lsn; }
  uint64_t lsn_end() const { return range_.lsn_end; }
  // Drops the first one. REQUIRES: there is one.
  void DropFirst() {
    const size_t bytes = ProvenRecords::HeadOf(range_.begin).bytes;
    range_.begin = ProvenRecords::Behind(range_.begin, bytes);
    range_.lsn += bytes;
    --range_.size;
  }

 private:
  Range range_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_STREAM_PROVEN_UPDATES_H_
