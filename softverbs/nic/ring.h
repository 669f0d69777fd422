#ifndef SOFTVERBS_NIC_RING_H_
#define SOFTVERBS_NIC_RING_H_

#include <atomic>
#include <cstdint>
#include <cstring>

#include "softverbs/nic/packet.h"

namespace softverbs {

// A ring of packets in memory that two processes share. It has one producer and one consumer.
// Neither trusts the other's counter. The data are mapped twice in a row, so a record is always
// contiguous.
//
// A producer that finds the ring empty goes back to its start. So a ring that is emptied often
// touches only its first pages, and a process with many links keeps them all in its caches. A
// record of the type kSkip fills what is left out. The consumer passes over it.

constexpr uint64_t kRingBytes = 256 * 1024;
// After so many bytes the producer looks whether the ring is empty. To look costs a cache miss.
constexpr uint64_t kRewindBytes = 20 * 1024;
// What is left out and the record behind it are published together, so they fit into the ring
// together, whatever the record.
static_assert(kRewindBytes >= RecordBytes(kMaxPayload));

// Counters of bytes. They only grow, and only the owner writes them.
struct RingControl {
  alignas(64) std::atomic<uint64_t> tail;  // the producer's
  alignas(64) std::atomic<uint64_t> head;  // the consumer's
  alignas(
      64) std::atomic<uint32_t> starving;  // the producer waits for space; the consumer takes it
};

// REQUIRES for all methods: one thread at a time (the link's transmit lock).
class RingProducer {
 public:
  RingProducer() = default;
  RingProducer(RingControl* control, uint8_t* data) : control_(control), data_(data) {}

  // Returns where to write a record of `bytes`, or null if the ring is full (or the peer lies).
  uint8_t* Reserve(uint32_t bytes) {
    if (tail_ >= rewind_at_) [[unlikely]]
      Rewind();
    if (tail_ + bytes - head_ > kRingBytes) {
      // Acquire: the consumer has finished reading everything below head.
      const uint64_t head = control_->head.load(std::memory_order_acquire);
      if (head > tail_ || head < head_) return nullptr;
      head_ = head;
      if (tail_ + bytes - head_ > kRingBytes) return nullptr;
    }
    return data_ + tail_ % kRingBytes;
  }

  void Publish(uint32_t bytes) {
    tail_ += bytes;
    // An exchange and not a release store, because a full barrier is needed: the caller's load of
    // the peer's sleep word must not come before it. Either we see the peer asleep or it sees our
    // record.
    control_->tail.exchange(tail_, std::memory_order_seq_cst);
  }

  // Begins again at the ring's start, as if it was new. Returns false, and does nothing, if the
  // ring is not empty. REQUIRES: the consumer's Restart follows before anything else.
  bool Restart() {
    if (control_->head.load(std::memory_order_relaxed) != tail_) return false;
    control_->tail.store(0, std::memory_order_relaxed);
    control_->head.store(0, std::memory_order_relaxed);
    control_->starving.store(0, std::memory_order_relaxed);
    tail_ = head_ = 0;
    rewind_at_ = kRewindBytes;
    return true;
  }

  // Asks the consumer for one doorbell when it has freed space. It may ring for space that was
  // freed before the question, so whoever is rung and finds too little asks again. This is a full
  // barrier for the same reason: the caller tries once more afterwards.
  void Starve() { control_->starving.exchange(1, std::memory_order_seq_cst); }

 private:
  void Rewind() {
    // Acquire: the consumer has finished reading everything below head.
    const uint64_t head = control_->head.load(std::memory_order_acquire);
    const uint64_t offset = tail_ % kRingBytes;
    if (head == tail_ && offset >= kRewindBytes) {
      head_ = head;
      PacketHeader skip{};
      skip.type = PacketType::kSkip;
      skip.record_bytes = static_cast<uint32_t>(kRingBytes - offset);
      memcpy(data_ + offset, &skip, sizeof(skip));
      tail_ += skip.record_bytes;  // published together with the next record
    }
    rewind_at_ = tail_ + kRewindBytes;
  }

  RingControl* control_ = nullptr;
  uint8_t* data_ = nullptr;
  uint64_t tail_ = 0;
  uint64_t head_ = 0;
  uint64_t rewind_at_ = kRewindBytes;  // the tail at which to look
};

// REQUIRES for all methods: one thread at a time (the NIC's progress lock).
class RingConsumer {
 public:
  enum class Result { kEmpty, kPacket, kCorrupt };

  RingConsumer() = default;
  RingConsumer(RingControl* control, const uint8_t* data) : control_(control), data_(data) {}

  bool Empty() const {
    // Sequentially consistent: must come after our own sleep word was published.
    return control_->tail.load(std::memory_order_seq_cst) == head_;
  }

  // Copies the next header out, and checks that the record lies within the published bytes.
  // `payload` points into the ring and stays valid until Release. Its bytes may still change.
  Result Next(PacketHeader* header, const uint8_t** payload) {
    // Acquire pairs with the producer's exchange: the record is complete.
    const uint64_t tail = control_->tail.load(std::memory_order_acquire);
    if (tail == head_) return Result::kEmpty;
    uint64_t available = tail - head_;
    if (available > kRingBytes || available % kRecordAlign != 0) return Result::kCorrupt;
    const uint8_t* record = data_ + head_ % kRingBytes;
    memcpy(header, record, sizeof(*header));
    if (header->type == PacketType::kSkip) [[unlikely]] {
      const uint64_t rest = kRingBytes - head_ % kRingBytes;
      if (header->record_bytes != rest || available <= rest) return Result::kCorrupt;
      head_ += rest;
      available -= rest;
      record = data_;
      memcpy(header, record, sizeof(*header));
    }
    if (header->payload_bytes > kMaxPayload ||
        header->record_bytes != RecordBytes(header->payload_bytes) ||
        header->record_bytes > available) {
      return Result::kCorrupt;
    }
    *payload = record + sizeof(*header);
    return Result::kPacket;
  }

  // Returns whether another record was published behind this one.
  bool HasMore(const PacketHeader& header) const {
    // Relaxed: a hint. Next looks again.
    return control_->tail.load(std::memory_order_relaxed) != head_ + header.record_bytes;
  }

  // Gives the record's space back. The store is a release, because our reads of the record are
  // done.
  void Release(const PacketHeader& header) {
    head_ += header.record_bytes;
    control_->head.store(head_, std::memory_order_release);
  }

  // Follows RingProducer::Restart.
  void Restart() { head_ = 0; }

  // Returns true once after the producer ran out of space. Call it once per batch. It is always an
  // exchange, because Starve relies on the barrier between our store of head and this load.
  bool TakeStarving() { return control_->starving.exchange(0, std::memory_order_seq_cst) != 0; }

 private:
  RingControl* control_ = nullptr;
  const uint8_t* data_ = nullptr;
  uint64_t head_ = 0;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_RING_H_
