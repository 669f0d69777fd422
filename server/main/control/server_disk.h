#ifndef GANNET_SERVER_MAIN_CONTROL_SERVER_DISK_H_
#define GANNET_SERVER_MAIN_CONTROL_SERVER_DISK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clocks.h"
#include "common/base/random_source.h"
#include "common/base/server_time.h"
#include "server/log/journal/files.h"
#include "server/main/disk/disk_log.h"
#include "server/main/disk/member_log.h"
#include "server/main/disk/run_directories.h"
#include "server/main/disk/unkept_changes.h"

namespace gannet {

// Where a server keeps its items, so that its next run finds them again.
struct DiskOptions {
  std::string data;  // a directory; empty: the items are in memory only
  Journal::Sync sync = Journal::Sync::kInterval;
  int64_t sync_interval_ns = kNsPerSecond;
  // What to begin with: a copy of a snapshot's file, or of such a directory.
  std::string restore_from;
  // A group's member was started before, and lost its place. A disk that fails is then given up, as
  // it would be later on, unless sync is always.
  bool may_fail = false;
};

// Returns the name of a mode, as the flag --sync has it.
const char* SyncName(Journal::Sync sync);
// Returns the mode of that name, or nullopt.
std::optional<Journal::Sync> SyncNamed(std::string_view name);

// A server's directory, locked, and the log in it.
class ServerDisk final : private MemberLogOwner {
 public:
  // Locks the directory. `of_member`: it is that of a group's member, who does not restore it by
  // itself (MemberLog). The errors are those of OpenDirectory.
  static absl::StatusOr<std::unique_ptr<ServerDisk>> Open(const DiskOptions& options,
                                                          bool of_member);

  // How many slots the store's index should have at least.
  uint64_t slots_min() const { return slots_min_; }
  // Where the clock of the last run was at least; ServerTime(): unknown.
  ServerTime noted_clock() const { return noted_clock_; }

  struct Run {
    Store* store = nullptr;
    Writes* writes = nullptr;
    ChangeStream* changes = nullptr;
    uint64_t region_bytes = 0;
    uint64_t first_version = 1;
    uint64_t incarnation = 0;  // of a member's process
    ServerTime now;            // where the server's clock begins
    WallClock wall;            // the machine's
    RandomSource* random = nullptr;
  };
  // Restores the store. From then on its changes are recorded, if there is a directory to record
  // them in. FailedPrecondition: there are items in both directories.
  // REQUIRES: the server is alone.
  absl::Status Restore(const Run& run);
  // Makes the log of a group's member, if it has a directory. REQUIRES: the store has no sink yet.
  absl::Status OpenMember(const Run& run);

  // nullptr: the items are in memory only.
  DiskLog* log() { return member_ ? member_->log() : log_.get(); }
  // nullptr: the server is alone, or the items are in memory only.
  MemberLog* member() { return member_.get(); }
  // Counts what a member does not keep that gave its disk up. nullptr: it did not.
  UnkeptChanges* unkept() { return unkept_.get(); }

  // Says how much the disk has, and what it did not take. Thread safe.
  void FillStats(StatsReply* stats);

  // Says where the items are kept. If `snapshot`, asks for one first, and returns its number; 0 if
  // there is no directory to write it to. Thread safe.
  uint64_t Storage(bool snapshot, const std::string& memory_file, StorageReply* reply);

 private:
  explicit ServerDisk(const DiskOptions& options) : options_(options) {}
  absl::Status RestoreFrom(const Run& run);
  absl::Status OpenRuns();
  void OnWhole() override;
  // Returns the error, unless the member goes on without its disk.
  absl::Status GiveUp(const absl::Status& why);

  const DiskOptions options_;
  std::unique_ptr<Files> from_;
  uint64_t slots_min_ = 0;
  ServerTime noted_clock_;
  std::unique_ptr<Files> files_;
  std::unique_ptr<DiskLog> log_;
  std::unique_ptr<RunDirectories> runs_;  // of a member
  std::unique_ptr<MemberLog> member_;
  std::unique_ptr<UnkeptChanges> unkept_;  // of a member without member_
};

// Reads everything that a server would read from a directory, and changes nothing. Prints what is
// there, as lines or as JSON. Returns what is wrong, and does not print it.
absl::Status CheckDirectory(const std::string& path, bool json);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_SERVER_DISK_H_
