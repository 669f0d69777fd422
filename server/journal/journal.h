#ifndef GANNET_SERVER_JOURNAL_JOURNAL_H_
#define GANNET_SERVER_JOURNAL_JOURNAL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "server/changes/change_sink.h"
#include "server/journal/files.h"

namespace gannet {

// The stream of all changes, on a disk. Workers append changes; one thread writes and syncs all
// that waits, so a sync serves everybody who waits for one (group commit).
//
//   position = journal.Append(change, now);         // a worker, under the key's lock
//   journal.Flush(now);                             // the journal's thread, again and again
//   if (journal.synced() >= position) publish it;   // a worker
//
// Invariants:
//   1. Changes are on disk in the order in which they were appended.
//   2. After a power cut, ReadJournal (read_journal.h) finds a prefix of what was appended. Nothing
//      below synced() is missing from it.
//   3. A segment is synced to its end before the next one exists. So a bad record can be the work
//      of a power cut in the last segment only.
//   4. A sync that failed is never tried again (files.h). Nothing is written from then on.
//
// A state machine: it starts no thread, never waits for anything but the disk (SyncAll also for
// threads that are within Append), and is given its clock. Thread safety: Append, Reserve, Fill,
// Taking, status and the positions from any thread; Flush and Trim from one thread at a time.
class Journal {
 public:
  enum class Sync : uint8_t {
    kNone,      // when the system likes to
    kInterval,  // at most every sync_interval_ns
    kAlways,    // whenever something was written
  };
  struct Options {
    Files* files = nullptr;  // outlives the journal
    uint64_t journal_id = 0;
    uint64_t position = 0;  // of the first record: where ReadJournal ended
    Sync sync = Sync::kInterval;
    int64_t sync_interval_ns = kNsPerSecond;
    uint64_t segment_bytes = 64 << 20;
    uint64_t disk_bytes = 0;  // of the segments that are there
    // Append refuses while more than this waits to be written. One record may exceed it.
    size_t waiting_bytes_max = 64 << 20;
    // Not of kNone: Append refuses while something has waited so long to be on disk. So a power cut
    // takes no more than that, also where the disk is full or hangs.
    int64_t unsynced_ns_max = 2 * kNsPerSecond;
  };

  // Creates the first segment. REQUIRES: ReadJournal was called for this directory, or it has no
  // segment.
  static absl::StatusOr<std::unique_ptr<Journal>> Create(const Options& options);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Returns the position behind the record. Once synced() is not less, it survives a power cut.
  // Returns nullopt if too much waits to be written, or for too long, or the journal has failed.
  std::optional<uint64_t> Append(const Change& change, int64_t now_ns);
  // The two steps of Append. Reserve takes room for a record of RecordBytes bytes, or refuses it.
  // Fill makes the record there, outside of all locks. What is reserved must be filled soon:
  // nothing behind it is written before.
  std::optional<ChangePlace> Reserve(size_t record_bytes, int64_t now_ns);
  void Fill(const Change& change, const ChangePlace& place);

  // Returns OK if Append takes a change now. Otherwise, returns why not: ResourceExhausted while
  // too much waits, or for too long, and the status if the journal has failed.
  absl::Status Taking(int64_t now_ns) const;

  // Writes what was appended, and syncs it if it is time. Does nothing once the journal has failed.
  // If there is no space, what waits is kept and written by a later Flush.
  void Flush(int64_t now_ns);
  // When Flush has something to do again, if nothing is appended before. nullopt: never.
  std::optional<int64_t> flush_due_ns() const;
  // Writes and syncs everything that was appended before, whatever the mode. For a clean stop, and
  // before a snapshot counts.
  absl::Status SyncAll(int64_t now_ns);

  // Removes the segments that lie below `position` as a whole.
  absl::Status Trim(uint64_t position);

  uint64_t appended() const { return appended_.load(std::memory_order_relaxed); }
  // Acquire: whoever sees the position sees the disk's state that it tells of, in order with other
  // memory. Nothing else depends on it.
  uint64_t synced() const { return synced_.load(std::memory_order_acquire); }
  // When the oldest change was appended that is not synced; 0 if there is none.
  int64_t unsynced_since_ns() const { return unsynced_since_ns_.load(std::memory_order_relaxed); }
  // Bytes of all segments.
  uint64_t disk_bytes() const { return disk_bytes_.load(std::memory_order_relaxed); }
  // OK; or ResourceExhausted, while there is no space; or why it has failed for ever.
  absl::Status status() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }

 private:
  explicit Journal(const Options& options);

  // Room for records in a row. Threads reserve a part of it one after another, under mutex_, and
  // fill their parts at the same time.
  struct Chunk {
    uint64_t first = 0;    // position
    int64_t since_ns = 0;  // when its first part was reserved
    size_t capacity = 0;
    std::unique_ptr<std::byte[]> bytes;
    size_t reserved = 0;            // grows under mutex_, until the flushing thread takes the chunk
    std::atomic<size_t> filled{0};  // bytes, not in order; all are there once it is `reserved`
  };

  bool Takes(int64_t now_ns) const GANNET_REQUIRES(mutex_);
  // Adds a chunk that has room for so many bytes.
  void AddChunk(size_t bytes, int64_t now_ns) GANNET_REQUIRES(mutex_);
  void TakeBatch();
  // Writes the chunks of the batch up to the first one that is still being filled.
  absl::Status WriteBatch();
  absl::Status WriteChunk(const Chunk& chunk);
  void GiveBack(std::unique_ptr<Chunk> chunk);
  // Writes zeros behind a chunk of so many bytes, if that makes the next syncs cheaper.
  absl::Status ZeroAhead(size_t bytes);
  // Makes a segment that begins at `first` the one that is written to. It has room for so many
  // bytes at least.
  absl::Status BeginSegment(uint64_t first, size_t bytes);
  absl::Status SyncSegment();
  bool SyncDue(int64_t now_ns) const;
  // Finds out anew how old the oldest change is that is not synced.
  void UpdateUnsynced();
  void Note(const absl::Status& status);

  const Options options_;

  // Any thread.
  mutable Mutex mutex_;
  std::deque<std::unique_ptr<Chunk>> waiting_ GANNET_GUARDED_BY(mutex_);
  size_t waiting_bytes_ GANNET_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<Chunk> spare_ GANNET_GUARDED_BY(mutex_);  // for the next AddChunk
  absl::Status status_ GANNET_GUARDED_BY(mutex_);
  std::atomic<uint64_t> appended_;  // changed under mutex_
  std::atomic<uint64_t> synced_;
  std::atomic<int64_t> unsynced_since_ns_{0};  // changed under mutex_
  std::atomic<uint64_t> disk_bytes_{0};
  std::atomic<bool> failed_{false};

  // The flushing thread only.
  std::unique_ptr<File> segment_;
  uint64_t segment_first_ = 0;
  uint64_t segment_space_ = 0;  // bytes that the file has room for, without its header
  std::deque<std::unique_ptr<Chunk>> batch_;  // being written
  uint64_t zeroed_ = 0;                       // position up to which zeros were written
  uint64_t written_;                          // position behind the last byte that was written
  int64_t written_since_ns_ = 0;              // of what is written and not synced; 0: nothing
  int64_t last_sync_ns_ = 0;
  std::optional<int64_t> retry_ns_;  // there was no space
};

}  // namespace gannet

#endif  // GANNET_SERVER_JOURNAL_JOURNAL_H_
