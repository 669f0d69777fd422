#ifndef GANNET_SERVER_MEMORY_TIER_TIER_CIRCLE_H_
#define GANNET_SERVER_MEMORY_TIER_TIER_CIRCLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "server/log/journal/files.h"
#include "server/memory/tier/tier_buffer.h"
#include "server/memory/tier/tier_format.h"

namespace gannet {

// The segments of a tier, of which the oldest is taken again when the newest is full.
//
//   place = circle.Add(record);       // the thread that writes
//   circle.Write();                   // the records are on the disk: make stubs
//   circle.Seal();                    // no room: ends the newest segment
//   list = circle.ListOldest();       // delete the stubs that lead there
//   circle.TakeOldest();              // and go on with Add
//
//   circle.Pin(place);                // who reads, behind a look at the stub
//   value = circle.Read(place, key, buffer);
//   circle.Unpin(place);
//
// Invariants:
//   1. A segment that is pinned is not written to, except where it has no record yet.
//   2. Pin and Read succeed for a record whose Write succeeded, until its segment is taken again,
//      unless the disk fails or lies. Read gives no other bytes than those of the record.
//   3. What Add gave before a Write that failed is not there, and never will be.
//
// A state machine: it starts no thread, and waits for nothing but the disk. Thread safety: Pin,
// Unpin and Read from any thread, the others from the one that writes.
class TierCircle {
 public:
  static constexpr uint64_t kBatchBytes = 1 << 20;

  struct Options {
    File* file = nullptr;  // outlives the circle; several threads may use it
    uint64_t tier = 0;
    uint64_t segment_bytes = kTierSegmentBytes;
    uint64_t segments = 0;
    // For a tier that was kept: of each segment, the lap of the stubs that lead there, or 0. So the
    // circle goes on behind the newest of them, and all their records stay until their segment's
    // turn. Empty: the circle begins anew.
    std::vector<uint32_t> laps;
  };
  explicit TierCircle(const Options& options);
  TierCircle(const TierCircle&) = delete;
  TierCircle& operator=(const TierCircle&) = delete;

  // Adds a record to the batch, and returns where it will be. Returns nullopt if the batch is full,
  // and then there is room behind the next Write; or the newest segment is. REQUIRES: key and value
  // are of lengths that a tier takes, and a segment has room for them.
  std::optional<TierPlace> Add(const TierRecord& record);
  bool batch_empty() const { return batch_bytes_ == 0; }
  // Writes the batch, and begins another one. ResourceExhausted: there is no space; any other
  // error: the disk fails.
  absl::Status Write();

  // What is in a segment. The stubs that lead to it lie in [begin, end), and have its lap.
  struct Segment {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint32_t lap = 0;  // 0: no stub leads there
    // Its records. nullopt: not known, as the list was not written, or cannot be read.
    std::optional<std::vector<TierListEntry>> list;
  };
  // Writes the list of the newest segment. If that fails, or a former process wrote there, it has
  // none. REQUIRES: batch_empty().
  absl::Status Seal();
  Segment ListOldest();
  // Begins to write to the oldest segment, which has no list from now on. Returns false if it is
  // still pinned; an error, and nothing changed, if the disk fails. REQUIRES: batch_empty(), and no
  // stub leads there.
  absl::StatusOr<bool> TakeOldest();

  // Keeps the segment of a record as it is, until Unpin. Returns false if it was taken again: look
  // at the stub again. REQUIRES: the place was given by Add, here or in a former process.
  bool Pin(const TierPlace& place);
  void Unpin(const TierPlace& place);
  // Reads a record into `buffer`, and returns its value there. DataLoss: what is on the disk is not
  // this record. Any other error: the disk fails. REQUIRES: the place is pinned; the buffer begins
  // at a block, and is as long as the record's blocks, for which kTierReadBytesMax is enough.
  absl::StatusOr<std::string_view> Read(const TierPlace& place, std::string_view key,
                                        std::span<std::byte> buffer) const;

 private:
  struct Lap {
    uint32_t lap = 0;
    uint32_t pins = 0;
  };

  uint64_t BeginOf(uint64_t segment) const {
    return kTierBlockBytes + segment * options_.segment_bytes;
  }
  uint64_t SegmentOf(uint64_t position) const {
    return (position - kTierBlockBytes) / options_.segment_bytes;
  }
  uint64_t oldest() const { return newest_ + 1 == options_.segments ? 0 : newest_ + 1; }
  bool Fits(uint64_t batch_bytes) const;

  const Options options_;
  mutable Mutex mutex_;
  std::vector<Lap> laps_ GANNET_GUARDED_BY(mutex_);  // of each segment

  // Who writes only.
  uint64_t newest_;   // the segment
  uint32_t lap_ = 0;  // of it
  uint64_t used_;     // bytes of it, without the batch
  TierBuffer batch_;
  uint64_t batch_bytes_ = 0;
  std::vector<TierListEntry> written_;  // of the newest segment
  std::vector<TierListEntry> added_;    // of the batch
  bool taken_ = false;                  // the newest segment, by this circle
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_TIER_TIER_CIRCLE_H_
