#ifndef GANNET_SERVER_MAIN_DISK_DISK_LOG_H_
#define GANNET_SERVER_MAIN_DISK_DISK_LOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/base/server_time.h"
#include "common/protocol/message.h"
#include "server/log/changes/change_stream.h"
#include "server/log/journal/files.h"
#include "server/log/journal/journal.h"
#include "server/main/disk/clock_note.h"
#include "server/main/disk/snapshots.h"
#include "server/memory/store/store.h"
#include "server/writes/writes.h"

namespace gannet {

// Keeps a store's items in a directory: a journal of all changes, and snapshots, so that the
// journal can be cut. One thread calls Poll, which writes and syncs what the workers recorded, and
// writes snapshots in small steps while the items change. All that may take as long as the disk
// likes. So unless the mode is always, another thread calls Write, and kill -9 takes no more than
// what was recorded since. While that thread is late, changes are refused for a moment (Journal).
//
// Beside them it notes the store's clock (ClockNote).
//
// Invariants:
//   1. A change is in the journal before anybody can see it (ChangeStream). With sync always, a
//      client's write is on disk before anybody can see it (Writes).
//   2. What Open restores is what the changes up to some moment made. With sync interval, no change
//      that was recorded earlier than the interval and a second before a power cut is missing.
//
// Thread safety: Take, Fill, BeginUpdates, EndUpdates, TakeUpdates, Write, takes, safe, FillStats,
// FillStorage, Taking and failed from any thread; all others from one.
class DiskLog : public ChangeConsumer {
 public:
  struct Options {
    Files* files = nullptr;  // outlives the log
    Store* store = nullptr;  // empty; outlives the log
    // The store's changes, with no consumer yet; outlives the log, which becomes the first one.
    // nullptr: somebody else gives them to the log (MemberLog).
    ChangeStream* changes = nullptr;
    // Through which clients write to the store; outlives the log. With sync always, they wait for
    // it. nullptr: there are none.
    Writes* writes = nullptr;
    Journal::Sync sync = Journal::Sync::kInterval;
    int64_t sync_interval_ns = kNsPerSecond;
    uint64_t segment_bytes = kSegmentBytesMax;
    // The first item of this run gets this version, if no restored item has a higher one
    // (common/layout/version.h).
    uint64_t first_version = 1;
    // The clock by which changes are too old to be taken. Poll is given the same one.
    std::function<int64_t()> clock;
    WallClock wall;           // says when a snapshot was complete
    uint64_t new_number = 0;  // random; that of a directory that is empty
    // For a member of a group:
    size_t waiting_bytes_max = 64 << 20;  // as Journal::Options
    int64_t unsynced_ns_max = 0;          // as Journal::Options; 0: by the sync interval
    bool refuses_for_age = true;          // as Journal::Options
    DiskLogOwner* owner = nullptr;        // of the log; nullptr: the server is alone
  };
  static constexpr uint64_t kSegmentBytesMax = 64 << 20;
  static constexpr uint64_t kSegmentBytesMin = 1 << 20;
  // Returns a length of segments that suits a region of this size.
  static uint64_t SegmentBytesFor(uint64_t region_bytes);

  // Restores the store from the directory and begins to record its changes there. Items that have
  // expired at `now` are left out. Errors: those of NumberOfDirectory, ReadSnapshot and
  // ReadJournal; ResourceExhausted, the items do not fit, or the disk is full.
  static absl::StatusOr<std::unique_ptr<DiskLog>> Open(const Options& options, ServerTime now);
  ~DiskLog() override;

  bool Take(const Change& change, ChangePlace* place) override;
  void Fill(const Change& change, const ChangePlace& place) override;
  bool BeginUpdates(UpdateLane* lane) override;
  void EndUpdates(UpdateLane* lane) override { TakeUpdates(lane, 0); }
  // The same if the stream's positions are ahead of the log's by `offset`.
  void TakeUpdates(UpdateLane* lane, uint64_t offset);
  Takes takes() const override;
  // What is on disk.
  uint64_t safe() const override { return journal_->synced(); }
  // With sync always, the writes that wait for the log. nullptr with another mode.
  Writes* waiting() { return waiting_; }

  // Writes what was recorded. Does not wait for a sync. Returns when to call it again, unless Poll
  // does: soon enough that what is recorded is seldom as old as the journal allows.
  int64_t Write() { return journal_->Write() ? kWriteSoonNs : kWritePeriodNs; }
  static constexpr int64_t kWritePeriodNs = 4 * kNsPerMs;
  // Others may have the lock of who writes meanwhile, and fill their records.
  static constexpr int64_t kWriteSoonNs = 100 * kNsPerUs;
  // Returns whether the log needs somebody who calls Write while Poll runs. With sync always it
  // does not, because nobody is told of a write that is not on disk.
  bool needs_writer() const { return options_.sync != Journal::Sync::kAlways; }
  // Does what is to be done: writes, syncs, and steps of a snapshot.
  void Poll(int64_t now_ns);
  // When Poll must be called again.
  int64_t due_ns() const { return due_ns_; }
  Snapshots& snapshots() { return *snapshots_; }
  // Writes and syncs everything. For a clean stop: no change may be recorded afterwards.
  absl::Status Close(int64_t now_ns);

  // A change was not taken, and happened all the same.
  void CountRefused() { refused_.fetch_add(1, std::memory_order_relaxed); }
  // Whether more waits to be written than so many bytes, or something waits for longer than it may
  // (Journal::Options).
  bool IsBehind(uint64_t bytes) const;

  void FillStats(StatsReply* stats) const;
  void FillStorage(StorageReply* reply) const;
  // One line about what was restored, for the log.
  const std::string& restored() const { return restored_; }
  // Returns whether changes are recorded, but for moments, or why not. From any thread.
  absl::Status Taking() const { return journal_->Taking(options_.clock()); }
  // No change is recorded any more.
  bool failed() const { return journal_->failed(); }
  uint64_t appended() const { return journal_->appended(); }
  uint64_t written() const { return journal_->written(); }  // kill -9 takes nothing before this

 private:
  explicit DiskLog(const Options& options);

  void CountNotTaken(Takes why);
  absl::Status Restore(ServerTime now);
  // If the journal has failed, so has what waits for it.
  void FailWaiting();
  void Tell(int64_t now_ns);
  // Returns where the store's clock is, if that is to be noted now.
  std::optional<ServerTime> ClockToNote() const;

  const Options options_;
  Writes* const waiting_;  // nullptr: nothing waits for the log
  uint64_t journal_id_ = 0;
  std::unique_ptr<Journal> journal_;
  std::optional<Snapshots> snapshots_;  // from Open on
  std::string restored_;

  // Relaxed, all of them: statistics and hints.
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> put_off_{0};  // refused for now, because the disk is behind

  // The thread that calls Poll.
  std::optional<ClockNote> clock_note_;  // from Open on
  int64_t due_ns_ = 0;
  absl::Status told_;  // the journal's status as last logged
  uint64_t refused_told_ = 0;
  uint64_t put_off_told_ = 0;
  int64_t quiet_until_ns_ = 0;
};

struct DirectoryRead {
  uint64_t snapshot_items = 0;
  uint64_t journal_changes = 0;
  uint64_t torn_bytes = 0;  // behind the last whole record
};
// Gives the newest snapshot of a directory, or of a copy of one, to `apply`, and then the changes
// of the journal behind it, if there is one. Changes nothing there.
absl::StatusOr<DirectoryRead> ReadDirectory(Files* files,
                                            absl::FunctionRef<absl::Status(const Change&)> apply);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_DISK_LOG_H_
