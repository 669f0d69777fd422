#ifndef GANNET_SERVER_STREAM_PROVEN_RECORDS_H_
#define GANNET_SERVER_STREAM_PROVEN_RECORDS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace gannet {

// Copies of records that were proven to be whole, in their order, until somebody takes them. So a
// record is proven once, however long it waits for its commit.
//
// It has memory for what waits, in one piece, and keeps that.
//
// Thread safety: one thread.
class ProvenRecords {
 public:
  struct Record {
    uint64_t position = 0;       // in the ring
    uint64_t item_checksum = 0;  // of an update
    std::span<const std::byte> bytes;
  };

  // Returns room for a copy of so many bytes behind the last record. It is good until the next call
  // of a method that is not const.
  std::byte* Room(size_t bytes) {
    if (end_ + sizeof(Head) + bytes > size_) [[unlikely]]
      MakeRoom(sizeof(Head) + bytes);
    return memory_.get() + end_ + sizeof(Head);
  }
  // The room has a record now. REQUIRES: Room(bytes) was called just before; a multiple of 8.
  void Add(uint64_t position, size_t bytes, uint64_t item_checksum) {
    const Head head = {.position = position, .bytes = bytes, .item_checksum = item_checksum};
    std::memcpy(memory_.get() + end_, &head, sizeof(head));
    end_ += sizeof(head) + bytes;
  }

  bool empty() const { return begin_ == end_; }
  // Places of records in the memory. They are good until the next call of a method that is not
  // const.
  size_t begin() const { return begin_; }
  size_t end() const { return end_; }
  // REQUIRES: there is a record.
  Record At(size_t place) const {
    Head head;
    std::memcpy(&head, memory_.get() + place, sizeof(head));
    return {.position = head.position,
            .item_checksum = head.item_checksum,
            .bytes = {memory_.get() + place + sizeof(head), head.bytes}};
  }
  static size_t Behind(size_t place, const Record& record) {
    return place + sizeof(Head) + record.bytes.size();
  }
  // Drops all records before this place.
  void PopTo(size_t place) {
    begin_ = place;
    if (empty()) begin_ = end_ = 0;
  }
  // The same with the oldest record. REQUIRES: it is not empty.
  Record First() const { return At(begin_); }
  void Pop() { PopTo(Behind(begin_, First())); }
  void Clear() { begin_ = end_ = 0; }

 private:
  struct Head {
    uint64_t position;
    uint64_t bytes;
    uint64_t item_checksum;
  };
  static constexpr size_t kBytesMin = 64 << 10;

  // What waits is moved to the front if that frees at least half of the memory. So each byte is
  // moved a few times at most.
  void MakeRoom(size_t bytes) {
    const size_t waiting = end_ - begin_;
    const size_t needed = 2 * (waiting + bytes);
    if (needed > size_) {
      size_ = std::max(needed, kBytesMin);
      auto larger = std::make_unique_for_overwrite<std::byte[]>(size_);
      if (waiting > 0) std::memcpy(larger.get(), memory_.get() + begin_, waiting);
      memory_ = std::move(larger);
    } else {
      std::memmove(memory_.get(), memory_.get() + begin_, waiting);
    }
    begin_ = 0;
    end_ = waiting;
  }

  std::unique_ptr<std::byte[]> memory_;  // not a vector, which would fill it with zeros
  size_t size_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_STREAM_PROVEN_RECORDS_H_
