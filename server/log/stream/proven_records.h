#ifndef GANNET_SERVER_LOG_STREAM_PROVEN_RECORDS_H_
#define GANNET_SERVER_LOG_STREAM_PROVEN_RECORDS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "common/base/data_path_checks.h"

namespace gannet {

// Copies of records that were proven to be whole, in their order, until somebody takes them. So a
// record is proven once, however long it waits for its commit.
//
// It has memory for what waits, in one piece, and keeps that.
//
// Thread safety: one thread.
class ProvenRecords {
 public:
  // Before each record.
  struct Head {
    uint64_t position;  // in the ring
    uint64_t bytes;     // of the record
  };
  struct Record {
    uint64_t position = 0;  // in the ring
    std::span<const std::byte> bytes;
  };

  // Adds records, many of which are short. It has its own copy of where the next one goes, because
  // the bytes of a copy may alias each member. Until it is destroyed, call nothing else.
  class Appender {
   public:
    explicit Appender(ProvenRecords* records)
        : records_(records), at_(records->At(records->end_)), limit_(records->At(records->size_)) {}
    ~Appender() { Store(); }
    Appender(const Appender&) = delete;
    Appender& operator=(const Appender&) = delete;

    // Returns room for a copy of so many bytes behind the last record. It is good until the next
    // call.
    std::byte* Room(size_t bytes) {
      if (sizeof(Head) + bytes > static_cast<size_t>(limit_ - at_)) [[unlikely]]
        MakeRoom(bytes);
      return at_ + sizeof(Head);
    }
    // The room has a record now. REQUIRES: Room(bytes) was called just before; a multiple of 8.
    void Add(uint64_t position, size_t bytes) {
      GANNET_CHECK_DATA_PATH(bytes % 8 == 0, "records are of whole words");
      const Head head = {.position = position, .bytes = bytes};
      std::memcpy(at_, &head, sizeof(head));
      at_ += sizeof(head) + bytes;
    }

   private:
    void Store() { records_->end_ = static_cast<size_t>(at_ - records_->memory_.get()); }
    void MakeRoom(size_t bytes) {
      Store();
      records_->MakeRoom(sizeof(Head) + bytes);
      at_ = records_->At(records_->end_);
      limit_ = records_->At(records_->size_);
    }

    ProvenRecords* const records_;
    std::byte* at_;
    std::byte* limit_;
  };

  // The same for one record. Room is good until the next call of a method that is not const.
  std::byte* Room(size_t bytes) { return Appender(this).Room(bytes); }
  void Add(uint64_t position, size_t bytes) { Appender(this).Add(position, bytes); }

  bool empty() const { return begin_ == end_; }
  // Places of records in the memory. They are good until the next call of a method that is not
  // const.
  size_t begin() const { return begin_; }
  size_t end() const { return end_; }
  // Returns what is at a place: a head, unless it is end().
  std::byte* At(size_t place) const { return memory_.get() + place; }
  // Word by word: whoever needs one of them, loads that alone.
  static Head HeadOf(const std::byte* at) {
    const auto word = [at](size_t offset) {
      uint64_t value;
      std::memcpy(&value, at + offset, sizeof(value));
      return value;
    };
    return {.position = word(offsetof(Head, position)), .bytes = word(offsetof(Head, bytes))};
  }
  // Returns the record whose head is at `at`.
  static const std::byte* RecordOf(const std::byte* at) { return at + sizeof(Head); }
  // Returns what is behind a record of so many bytes, whose head is at `at`.
  static const std::byte* Behind(const std::byte* at, size_t bytes) {
    return at + sizeof(Head) + bytes;
  }
  // Drops all records before this place.
  void PopTo(size_t place) {
    begin_ = place;
    if (empty()) begin_ = end_ = 0;
  }
  // The same with the oldest record. REQUIRES: it is not empty.
  Record First() const {
    GANNET_CHECK_DATA_PATH(!empty(), "there is no record");
    const Head head = HeadOf(At(begin_));
    return {.position = head.position, .bytes = {At(begin_) + sizeof(head), head.bytes}};
  }
  void Pop() { PopTo(begin_ + sizeof(Head) + First().bytes.size()); }
  void Clear() { begin_ = end_ = 0; }

 private:
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

#endif  // GANNET_SERVER_LOG_STREAM_PROVEN_RECORDS_H_
