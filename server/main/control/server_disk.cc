// Opens a server's directory, restores its items, and then begins the log there. What was restored
// from elsewhere is recorded here before the server serves.

#include "server/main/control/server_disk.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "server/log/journal/posix_files.h"
#include "server/main/control/check_memory_file.h"
#include "server/main/disk/restore.h"

namespace gannet {
namespace {

absl::Status OfFlag(const char* flag, const absl::Status& status) {
  const char* const hint = absl::IsNotFound(status) ? ": is the path right?" : "";
  return {status.code(), absl::StrCat(flag, ": ", status.message(), hint)};
}

absl::StatusOr<std::unique_ptr<Files>> OfFlag(const char* flag,
                                              absl::StatusOr<std::unique_ptr<Files>> files) {
  return files.ok() ? std::move(files) : OfFlag(flag, files.status());
}

}  // namespace

const char* SyncName(Journal::Sync sync) {
  switch (sync) {
    case Journal::Sync::kNone:
      return "none";
    case Journal::Sync::kInterval:
      return "interval";
    case Journal::Sync::kAlways:
      return "always";
  }
  return "";
}

std::optional<Journal::Sync> SyncNamed(std::string_view name) {
  for (const auto sync : {Journal::Sync::kNone, Journal::Sync::kInterval, Journal::Sync::kAlways}) {
    if (name == SyncName(sync)) return sync;
  }
  return std::nullopt;
}

absl::StatusOr<std::unique_ptr<ServerDisk>> ServerDisk::Open(const DiskOptions& options,
                                                             bool of_member) {
  std::unique_ptr<ServerDisk> disk(new ServerDisk(options));
  if (of_member) {
    if (options.data.empty()) return disk;
    if (const absl::Status opened = disk->OpenRuns(); !opened.ok()) {
      GANNET_RETURN_IF_ERROR(disk->GiveUp(opened));
    }
    return disk;
  }
  if (!options.data.empty()) {
    GANNET_ASSIGN_OR_RETURN(disk->files_, OfFlag("--data", OpenDirectory(options.data)));
    GANNET_ASSIGN_OR_RETURN(disk->slots_min_, SlotsForSnapshot(disk->files_.get()));
    disk->noted_clock_ = NotedClock(disk->files_.get());
  }
  if (!options.restore_from.empty()) {
    GANNET_ASSIGN_OR_RETURN(disk->from_,
                            OfFlag("--restore_from", OpenDirectoryToRead(options.restore_from)));
    GANNET_ASSIGN_OR_RETURN(disk->slots_min_, SlotsForSnapshot(disk->from_.get()));
  }
  return disk;
}

absl::Status ServerDisk::OpenRuns() {
  auto runs = RunDirectories::Open(options_.data);
  if (!runs.ok()) return OfFlag("--data", runs.status());
  runs_ = *std::move(runs);
  if (runs_->former() == nullptr) return absl::OkStatus();
  GANNET_ASSIGN_OR_RETURN(slots_min_, SlotsForSnapshot(runs_->former()));
  noted_clock_ = NotedClock(runs_->former());
  return absl::OkStatus();
}

absl::Status ServerDisk::GiveUp(const absl::Status& why) {
  if (!options_.may_fail || options_.sync == Journal::Sync::kAlways) return why;
  LOG(ERROR) << "gives up its disk, and joins its group without it: " << why.message()
             << ". The group's items are in the memory of its members. Mend the disk, and start "
                "this server again";
  runs_.reset();
  unkept_ = std::make_unique<UnkeptChanges>();
  return absl::OkStatus();
}

absl::Status ServerDisk::Restore(const Run& run) {
  CHECK(runs_ == nullptr) << "a member restores its runs itself";
  if (files_ != nullptr) {
    GANNET_ASSIGN_OR_RETURN(
        log_, DiskLog::Open({.files = files_.get(),
                             .store = run.store,
                             .changes = run.changes,
                             .writes = run.writes,
                             .sync = options_.sync,
                             .sync_interval_ns = options_.sync_interval_ns,
                             .segment_bytes = DiskLog::SegmentBytesFor(run.region_bytes),
                             .first_version = run.first_version,
                             .clock = MonotonicNs,
                             .wall = run.wall,
                             .new_number = run.random->Next()},
                            run.now));
    LOG(INFO) << log_->restored() << "; sync " << SyncName(options_.sync);
  }
  return from_ == nullptr ? absl::OkStatus() : RestoreFrom(run);
}

absl::Status ServerDisk::OpenMember(const Run& run) {
  CHECK(!run.store->records()) << "the store has a sink already";
  if (runs_ == nullptr) return absl::OkStatus();
  auto member = MemberLog::Open({.own = runs_->own(),
                                 .former = runs_->former(),
                                 .owner = this,
                                 .store = run.store,
                                 .writes = run.writes,
                                 .changes = run.changes,
                                 .incarnation = run.incarnation,
                                 .sync = options_.sync,
                                 .sync_interval_ns = options_.sync_interval_ns,
                                 .segment_bytes = DiskLog::SegmentBytesFor(run.region_bytes),
                                 .clock = MonotonicNs,
                                 .wall = run.wall,
                                 .new_number = run.random->Next()});
  if (!member.ok()) return GiveUp(member.status());
  member_ = *std::move(member);
  return absl::OkStatus();
}

void ServerDisk::OnWhole() {
  if (const absl::Status status = runs_->RemoveFormer(); !status.ok()) {
    LOG(ERROR) << status.message() << "; the next start tries again";
  }
}

// If the server has a directory of its own, it records every item there before it serves.
absl::Status ServerDisk::RestoreFrom(const Run& run) {
  if (log_ != nullptr && log_->appended() > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.data,
                     " has items already: start without --restore_from, or with an "
                     "empty directory"));
  }
  uint64_t version_max = 0;
  const auto apply = [&](const Change& change) {
    version_max = std::max(version_max, change.version);
    // Nobody else writes yet.
    if (log_ != nullptr && log_->takes() == ChangeConsumer::Takes::kLater) {
      log_->Poll(MonotonicNs());
    }
    ReplyStatus status = RestoreChange(run.store, change, run.now);
    if (status == ReplyStatus::kDiskRefuses) {  // it is behind by now
      log_->Poll(MonotonicNs());
      status = RestoreChange(run.store, change, run.now);
    }
    if (status == ReplyStatus::kOk) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        status == ReplyStatus::kDiskRefuses
            ? absl::StrCat("the disk of ", options_.data, " does not take the items")
            : absl::StrCat("the items in ", options_.restore_from,
                           " do not fit into the memory: start with more --memory"));
  };
  GANNET_ASSIGN_OR_RETURN(const DirectoryRead read, ReadDirectory(from_.get(), apply));
  run.store->BeginVersions(std::max(run.first_version, version_max + 1));
  if (log_ != nullptr) GANNET_RETURN_IF_ERROR(log_->Close(MonotonicNs()));
  LOG(INFO) << "restored from " << options_.restore_from << ": " << read.snapshot_items
            << " items of a snapshot, then " << read.journal_changes << " changes of the journal";
  return absl::OkStatus();
}

void ServerDisk::FillStats(StatsReply* stats) {
  if (log() != nullptr) log()->FillStats(stats);
  if (unkept_ != nullptr) stats->disk_refused = unkept_->count();
}

uint64_t ServerDisk::Storage(bool snapshot, const std::string& memory_file, StorageReply* reply) {
  *reply = {};
  CopyText(memory_file, reply->memory_file);
  if (log() == nullptr) return 0;
  const uint64_t number = snapshot ? log()->snapshots().Ask() : 0;
  log()->FillStorage(reply);
  return number;
}

absl::Status CheckDirectory(const std::string& path, bool json) {
  GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<Files> files,
                          OfFlag("--check", OpenDirectoryToRead(NewestRunIn(path))));
  uint64_t puts = 0;
  uint64_t deletes = 0;
  uint64_t bytes = 0;
  const auto count = [&](const Change& change) {
    ++(change.kind == Change::Kind::kPut ? puts : deletes);
    bytes += change.key.size() + change.value.size();
    return absl::OkStatus();
  };
  GANNET_ASSIGN_OR_RETURN(const DirectoryRead read, ReadDirectory(files.get(), count));
  const ReportLine lines[] = {{"snapshot_items", read.snapshot_items},
                              {"journal_changes", read.journal_changes},
                              {"puts", puts},
                              {"deletes", deletes},
                              {"key_and_value_bytes", bytes},
                              {"torn_bytes", read.torn_bytes}};
  std::fputs(RenderReport(lines, json).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace gannet
