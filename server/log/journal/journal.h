#ifndef GANNET_SERVER_LOG_JOURNAL_JOURNAL_H_
#define GANNET_SERVER_LOG_JOURNAL_JOURNAL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "server/log/changes/change_sink.h"
#include "server/log/changes/update_lane.h"
#include "server/log/journal/files.h"
#include "server/log/journal/segment_files.h"
#include "server/log/journal/waiting_records.h"

namespace gannet {

// The stream of all changes, on a disk. Workers append changes; one thread syncs all that was
// appended, so a sync serves everybody who waits for one (group commit). A sync may take long.
// Another thread may write meanwhile: what is written survives kill -9, because the system has it.
//
//   position = journal.Append(change, now);         // a worker, under the key's lock
//   journal.Write();                                // any thread, every few milliseconds
//   journal.Flush(now);                             // the syncing thread, again and again
//   if (journal.synced() >= position) publish it;   // a worker
//
// Invariants:
//   1. Changes are on disk in the order in which they were appended.
//   2. After a power cut, ReadJournal (read_journal.h) finds a prefix of what was appended. Nothing
//      below synced() is missing from it.
//   3. A segment is synced to its end before the next one exists. So a bad record can be the work
//      of a power cut in the last segment only.
//   4. A sync that failed is never tried again (files.h). Nothing is written from then on.
//   5. Write never waits for a sync, not even for those that a new segment needs.
//   6. No change is taken while one is unwritten that was taken unwritten_ns_max before. So kill -9
//      takes only the last changes, all taken within that time, however late who writes is. What
//      has a place is never held back.
//
// A state machine: it starts no thread, never waits for anything but the disk (SyncAll also for
// threads that are within Append), and is given its clock. Thread safety: Append, AppendUpdates,
// Reserve, Fill, Write, Taking, status and the positions from any thread; Flush, SyncAll and Trim
// from one thread at a time.
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
    // Append refuses while more than this is in memory, waiting to be written. One record may
    // exceed it.
    size_t waiting_bytes_max = 64 << 20;
    // Not of kNone: Append refuses while something has waited so long to be on disk. So a power cut
    // takes no more than that, also where the disk is full or hangs.
    int64_t unsynced_ns_max = 2 * kNsPerSecond;
    // Not of kAlways: the same while something has waited so long to be written.
    int64_t unwritten_ns_max = 5 * kNsPerMs;
    // If false, Append never refuses for these two: who appends asks IsOld before.
    bool refuses_for_age = true;
  };

  // Creates the first segment. If there is no space for it, the journal takes no change until Flush
  // finds some. REQUIRES: ReadJournal was called for this directory, or it has no
  // segment.
  static absl::StatusOr<std::unique_ptr<Journal>> Create(const Options& options);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Returns the position behind the record. Once synced() is not less, it survives a power cut.
  // Returns nullopt if too much waits to be written, or for too long, or there is no space, or the
  // journal has failed.
  std::optional<uint64_t> Append(const Change& change, int64_t now_ns);
  // The two steps of Append. Reserve takes room for a record of RecordBytes bytes, or refuses it.
  // Fill makes the record there, outside of all locks. What is reserved must be filled soon:
  // nothing behind it is written before.
  std::optional<ChangePlace> Reserve(size_t record_bytes, int64_t now_ns) {
    return records_.Reserve(record_bytes, now_ns);
  }
  void Fill(const Change& change, const ChangePlace& place) {
    records_.Fill(change, place, synced());
  }
  // Appends the updates of a lane, which is sealed and not empty. It refuses none: ask Takes before
  // the lane begins. Only copies them. Whoever writes makes their records.
  uint64_t AppendUpdates(const UpdateLane& lane, int64_t now_ns) {
    return records_.AppendUpdates(lane, now_ns);
  }

  // Returns whether Append takes a change now.
  bool Takes(int64_t now_ns) const { return records_.Takes(now_ns); }
  // The same for people: returns why not, and OK also while something has waited to be written for
  // less than a second. ResourceExhausted while too much waits, or for too long, or there is no
  // space; and the status if the journal has failed.
  absl::Status Taking(int64_t now_ns) const;
  // Returns whether something has waited to be written or synced for longer than it may.
  bool IsOld(int64_t now_ns) const { return records_.IsOld(now_ns); }

  // Writes what was appended. Does nothing once the journal has failed. If there is no space, what
  // waits is kept and written by a later call. Returns true if there is more to write in a moment:
  // a record was still being filled, or so much came meanwhile that it is worth a write.
  bool Write();
  // Writes, and does what waits for the disk: begins the next segment if this one is full, and
  // syncs if it is time.
  void Flush(int64_t now_ns);
  // When a sync is due, if nothing is appended before. nullopt: never.
  std::optional<int64_t> sync_due_ns() const;
  // Writes and syncs everything that was appended before, whatever the mode. For a clean stop, and
  // before a snapshot counts.
  absl::Status SyncAll(int64_t now_ns);

  // Removes the segments that lie below `position` as a whole.
  absl::Status Trim(uint64_t position) { return files_.Trim(position); }

  uint64_t appended() const { return records_.appended(); }
  // kill -9 takes nothing below this position. Relaxed: nothing depends on it.
  uint64_t written() const { return written_.load(std::memory_order_relaxed); }
  // Acquire: whoever sees the position sees the disk's state that it tells of, in order with other
  // memory. Nothing else depends on it.
  uint64_t synced() const { return synced_.load(std::memory_order_acquire); }
  // When the oldest change was appended that is not synced; 0 if there is none.
  int64_t unsynced_since_ns() const { return records_.unsynced_since_ns(); }
  // The same for what is not written.
  int64_t unwritten_since_ns() const { return records_.unwritten_since_ns(); }
  // Bytes of all segments.
  uint64_t disk_bytes() const { return files_.disk_bytes(); }
  // OK; or ResourceExhausted, while there is no space; or why it has failed for ever.
  absl::Status status() const;
  bool failed() const { return failed_.load(std::memory_order_acquire); }

 private:
  explicit Journal(const Options& options);

  absl::Status WriteWaiting() GANNET_REQUIRES(write_mutex_);
  // Makes the segment that the journal begins with.
  absl::Status BeginFirstSegment();
  // Returns an error if somebody removed or renamed the segment or its directory.
  absl::Status LookForSegment(int64_t now_ns);
  bool SegmentIsFull();
  // Makes the next segment, and has everything written there from now on.
  absl::Status BeginSegment();
  absl::Status SyncSegment();
  bool SyncDue(int64_t now_ns) const;
  void NoteSynced(uint64_t until);
  enum Step : uint8_t { kWriting, kSyncing };
  void Note(Step step, const absl::Status& status);

  const Options options_;
  WaitingRecords records_;
  SegmentFiles files_;

  // Whoever writes. Taken before the other locks here.
  Mutex write_mutex_;
  SegmentWriter segment_ GANNET_GUARDED_BY(write_mutex_);
  std::atomic<uint64_t> written_;  // changed under write_mutex_
  // When the oldest change was appended that was written since the last sync began; 0: none was.
  int64_t written_since_ns_ GANNET_GUARDED_BY(write_mutex_) = 0;

  // Any thread.
  mutable Mutex status_mutex_;
  std::array<absl::Status, 2> status_ GANNET_GUARDED_BY(status_mutex_);  // of each Step
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> synced_;

  // The syncing thread only.
  int64_t last_sync_ns_ = 0;
  int64_t next_look_ns_ = 0;
  bool begun_ = false;  // there is a segment
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_JOURNAL_JOURNAL_H_
