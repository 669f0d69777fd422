#ifndef GANNET_SERVER_MEMORY_TIER_TIER_WRITER_H_
#define GANNET_SERVER_MEMORY_TIER_TIER_WRITER_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "server/memory/tier/tier_circle.h"
#include "server/memory/tier/tier_items.h"

namespace gannet {

// Writes values to a tier before they are evicted, batch by batch, and makes room for them.
//
// If the disk fails, nothing is written any more; if it has no space, nothing for a second. What
// was to be written is evicted by whoever needs its memory.
//
// A state machine: it starts no thread (tier_thread.h), and is given its clock. Thread safety: Poll
// from one thread, the others from any.
class TierWriter {
 public:
  static constexpr int64_t kFullNs = kNsPerSecond;  // until it tries again
  static constexpr int64_t kSlowNs = kNsPerSecond;

  // Both outlive the writer.
  TierWriter(TierCircle* circle, TierItems* items) : circle_(*circle), items_(*items) {}
  TierWriter(const TierWriter&) = delete;
  TierWriter& operator=(const TierWriter&) = delete;

  enum class Did : uint8_t {
    kWorked,  // there may be more to do
    kNothing,
    kWaits,  // for reads of the segment that is to be taken
  };
  // Writes a batch, or makes room for one.
  Did Poll(int64_t now_ns);

  enum class Disk : uint8_t {
    kWorks,
    kSlow,    // a write is under way for kSlowNs
    kFull,    // the last write found no space
    kFailed,  // for ever
  };
  Disk disk(int64_t now_ns) const;
  // Why the last write failed; OK if it did not.
  absl::Status status() const;

  // Relaxed: statistics.
  uint64_t records_written() const { return records_written_.load(std::memory_order_relaxed); }
  uint64_t records_dropped() const { return records_dropped_.load(std::memory_order_relaxed); }
  uint64_t segments_taken() const { return segments_taken_.load(std::memory_order_relaxed); }

 private:
  void FillBatch();
  Did WriteBatch(int64_t now_ns);
  Did MakeRoom(int64_t now_ns);
  void Note(const absl::Status& status, int64_t now_ns);

  TierCircle& circle_;
  TierItems& items_;

  // The thread that polls.
  std::optional<TierRecord> next_;                     // found no room yet
  std::vector<std::pair<uint64_t, TierPlace>> batch_;  // with the keys' hashes
  bool forgotten_ = false;                             // no stub leads to the oldest segment
  int64_t full_until_ns_ = 0;

  // Relaxed: for those who watch.
  std::atomic<int64_t> busy_since_ns_{0};  // a step is under way; 0: none is
  std::atomic<Disk> disk_{Disk::kWorks};   // never kSlow
  std::atomic<uint64_t> records_written_{0};
  std::atomic<uint64_t> records_dropped_{0};
  std::atomic<uint64_t> segments_taken_{0};
  mutable Mutex mutex_;
  absl::Status status_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_TIER_TIER_WRITER_H_
