#ifndef GANNET_SERVER_MAIN_DISK_MEMBER_LOG_H_
#define GANNET_SERVER_MAIN_DISK_MEMBER_LOG_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clocks.h"
#include "common/base/mutex.h"
#include "server/log/changes/change_stream.h"
#include "server/log/changes/member_disk.h"
#include "server/main/disk/disk_log.h"
#include "server/main/disk/run_directories.h"
#include "server/main/disk/run_proof.h"
#include "server/writes/writes.h"

namespace gannet {

// Whose log it is: that of a server's disk (ServerDisk).
class MemberLogOwner {
 public:
  // This run is whole: the former one may go. Called by the disk's thread.
  virtual void OnWhole() = 0;

 protected:
  ~MemberLogOwner() = default;
};

// What a member of a group keeps on its disk: a journal and snapshots, as a server alone has them.
// They are for the case that all members are gone at once. Unless the mode is always, nothing of
// the group waits until something is on a disk.
//
//   joining                nothing is kept; the former run stays as it is
//   Begin                  the store has all of the group's items: a first snapshot, and a journal
//                          of what changes
//   snapshot is whole      the former run goes
//
// 1. The disk never refuses a change. While it is behind, behind() is true, and a primary takes no
//    writes for a moment.
// 2. A disk that fails, is full, is behind for kPatienceNs or by kBytesMax is given up: the member
//    goes on without it, and counts what it does not keep, until it is started again. With sync
//    always, a primary then takes no write, and how long the disk is behind does not matter, as
//    writes wait for it.
// 3. Positions of the stream go on from run to run; those of the journal begin at 0. Begin notes
//    the difference.
// 4. A run is whole when it has a snapshot and its proof (run_proof.h). Before, the former run
// stays.
//
// Thread safety: Take and Fill as every consumer's; the rest as MemberDisk's.
class MemberLog final : public ChangeConsumer, public MemberDisk, private DiskLogOwner {
 public:
  static constexpr int64_t kPatienceNs = 10 * kNsPerSecond;
  static constexpr uint64_t kBehindBytes = 64 << 20;
  static constexpr uint64_t kBytesMax = 256 << 20;

  struct Options {
    Files* own = nullptr;     // an empty directory, for this run
    Files* former = nullptr;  // with a whole run; nullptr: there is none
    MemberLogOwner* owner = nullptr;
    Store* store = nullptr;  // empty, without a sink yet
    const Writes* writes = nullptr;
    const ChangeStream* changes = nullptr;
    uint64_t incarnation = 0;  // of this process
    Journal::Sync sync = Journal::Sync::kInterval;
    int64_t sync_interval_ns = kNsPerSecond;
    uint64_t segment_bytes = DiskLog::kSegmentBytesMax;
    std::function<int64_t()> clock;  // as DiskLog::Options, as are the next two
    WallClock wall;
    uint64_t new_number = 0;
  };
  // All outlive the log, but that `former` is not used after OnWhole. Errors as DiskLog::Open.
  static absl::StatusOr<std::unique_ptr<MemberLog>> Open(const Options& options);

  bool Take(const Change& change, ChangePlace* place) override;
  void Fill(const Change& change, const ChangePlace& place) override;
  void EndUpdates(UpdateLane* lane) override;
  bool Hears() const override { return begun(); }  // also to count what is not kept

  // With sync always: what is on disk. A primary's writes are published when they are below it.
  uint64_t safe() const override;

  // --- MemberDisk ---
  bool always() const override { return options_.sync == Journal::Sync::kAlways; }
  bool behind() override;
  bool refuses() const override { return always() && given_up(); }
  std::string former_path() const override {
    return options_.former == nullptr ? "" : options_.former->path();
  }
  uint64_t FormerLsn(uint64_t history) const override {
    return history == former_history_ ? former_lsn_ : 0;
  }
  uint64_t former_history() const override {
    return former_proof_ ? former_proof_->kept.history : 0;
  }
  std::optional<KeptRun> Former(uint64_t history) const override;
  absl::Status Restore(absl::FunctionRef<absl::Status(const Change&)> make) const override;
  absl::Status Claim(uint64_t history, uint64_t next_history, uint64_t epoch) override;
  bool begun() const override { return begun_.load(std::memory_order_relaxed); }
  void Begin(uint64_t history, uint64_t restored) override;
  bool whole() const override {
    return named_.load(std::memory_order_acquire) && proven_.load(std::memory_order_acquire);
  }
  void Lead() override { lead_at_.store(options_.changes->end(), std::memory_order_relaxed); }
  bool MayOpen(uint64_t epoch) override;
  void Note(uint64_t history, uint64_t lsn) override;

  // The member goes on without its disk.
  bool given_up() const { return given_up_.load(std::memory_order_relaxed); }
  DiskLog* log() const { return log_.get(); }

 private:
  explicit MemberLog(const Options& options) : options_(options) {}

  absl::Status WriteEmptySnapshot();
  std::optional<uint64_t> SnapshotAt() const override;
  void GiveUp(const absl::Status& why);
  void OnSnapshot() override;
  void OnPoll() override;
  // Writes what the run proves by now. Returns false if it cannot.
  bool WriteProof();
  void WriteNote();

  const Options options_;
  uint64_t former_history_ = 0;
  uint64_t former_lsn_ = 0;
  std::optional<RunProof> former_proof_;
  std::unique_ptr<DiskLog> log_;

  uint64_t offset_ = 0;             // set by Begin, before begun_
  std::atomic<bool> begun_{false};  // release: after offset_
  std::atomic<uint64_t> end_{0};    // of what was taken, in the stream. Release: after lead_at_
  static constexpr uint64_t kNoLead = std::numeric_limits<uint64_t>::max();
  std::atomic<uint64_t> lead_at_{kNoLead};
  // Relaxed: hints.
  std::atomic<bool> given_up_{false};
  std::atomic<int64_t> behind_since_ns_{0};  // 0: it is not

  struct Noted {
    uint64_t history = 0;
    uint64_t lsn = 0;
    uint64_t position = 0;  // of the journal
    bool written = true;
  };
  Mutex mutex_;
  Noted noted_ GANNET_GUARDED_BY(mutex_);
  KeptRun proof_ GANNET_GUARDED_BY(mutex_);  // of this run, as it is to be
  KeptRun written_proof_ GANNET_GUARDED_BY(mutex_);
  uint64_t open_epoch_ GANNET_GUARDED_BY(mutex_) = 0;     // see MayOpen
  uint64_t open_position_ GANNET_GUARDED_BY(mutex_) = 0;  // of the journal
  std::atomic<bool> named_{false};   // a snapshot is there. Release: after its files
  std::atomic<bool> proven_{false};  // the proof is there. Release: after its file
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_MEMBER_LOG_H_
