#ifndef GANNET_SERVER_MAIN_DISK_SNAPSHOTS_H_
#define GANNET_SERVER_MAIN_DISK_SNAPSHOTS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/protocol/message.h"
#include "common/protocol/storage.h"
#include "server/log/journal/files.h"
#include "server/log/journal/journal.h"
#include "server/main/disk/snapshot.h"
#include "server/main/disk/snapshot_tries.h"
#include "server/memory/store/store.h"
#include "server/writes/writes.h"

namespace gannet {

// Whose log it is: that of a group's member (MemberLog), which decides when a snapshot may begin.
//
// Thread safety: the disk's thread.
class DiskLogOwner {
 public:
  // Returns where a snapshot may begin, or nullopt if none may yet.
  virtual std::optional<uint64_t> SnapshotAt() const = 0;
  // A snapshot is there, under its name.
  virtual void OnSnapshot() = 0;
  // At the end of each DiskLog::Poll, and of Close.
  virtual void OnPoll() = 0;

 protected:
  ~DiskLogOwner() = default;
};

// The snapshots of a directory, one after another. Each lets the journal be cut. It is written in
// small steps, while the items change.
//
// A snapshot counts, under its name, only when the journal is on disk up to its end. Older segments
// and snapshots go only then. One that fails is tried again after a minute.
//
// Thread safety: Ask, FillStats and FillStorage from any thread; all others from the disk's.
class Snapshots {
 public:
  struct Options {
    Files* files = nullptr;  // these outlive it
    Store* store = nullptr;
    Journal* journal = nullptr;
    DiskLogOwner* owner = nullptr;    // nullptr: the server is alone
    const Writes* waiting = nullptr;  // writes that wait for the journal; nullptr: none do
    WallClock wall;                   // says when a snapshot was complete
    uint64_t journal_id = 0;
    uint64_t segment_bytes = 0;
  };
  // `newest`: what was restored; nullopt: there is no snapshot.
  Snapshots(const Options& options, const std::optional<SnapshotRead>& newest);

  // Begins a snapshot if one is due, or takes a step of the one that is being written.
  void Poll(int64_t now_ns);
  // Between two steps of a snapshot: so that it takes at most a part of the disk and of a core.
  static constexpr int64_t kStepPeriodNs = kNsPerMs;
  bool writes() const { return writer_ != nullptr; }
  // Returns whether the items are such as a snapshot may have.
  bool MayBegin() const { return options_.owner == nullptr || options_.owner->SnapshotAt(); }
  // Removes snapshots other than the newest, files that were never completed, and segments that
  // nobody needs.
  absl::Status RemoveOld();

  // Asks Poll to begin a snapshot, behind the one that is being written. Returns its number.
  uint64_t Ask() { return tries_.Ask(); }
  // Adds the bytes of the newest one.
  void FillStats(StatsReply* stats) const;
  void FillStorage(StorageReply* reply) const { tries_.Fill(reply); }

 private:
  bool IsDue(int64_t now_ns) const;
  absl::Status Begin();
  absl::Status Step(int64_t now_ns);
  absl::Status Finish(int64_t now_ns);
  void GiveUp(const absl::Status& why, int64_t now_ns);

  const Options options_;
  SnapshotTries tries_;
  // Relaxed: statistics.
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> bytes_{0};  // of all snapshots

  // The disk's thread.
  std::unique_ptr<SnapshotWriter> writer_;  // of the one that is being written
  uint64_t visit_position_ = 0;             // where its walk goes on
  int64_t began_ns_ = 0;
  int64_t next_step_ns_ = 0;        // of the walk
  std::optional<uint64_t> newest_;  // position of the newest snapshot
  uint64_t newest_bytes_ = 0;       // of that
  int64_t none_until_ns_ = 0;       // the last one failed
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_SNAPSHOTS_H_
