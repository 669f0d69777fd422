// A directory of --data: restores it, and hands changes on to the journal. Poll gives a turn to the
// journal and one to the snapshots. A failed journal is over, and what waits for it fails.

#include "server/main/disk/disk_log.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "server/log/changes/update_lane_inline.h"
#include "server/log/journal/read_journal.h"
#include "server/log/journal/segment.h"
#include "server/main/disk/data_directory.h"
#include "server/main/disk/restore.h"

namespace gannet {
namespace {

// How soon Poll sees that a segment is full or a snapshot is wanted, if somebody else writes.
constexpr int64_t kLookPeriodNs = 20 * kNsPerMs;
// A change is refused while one has waited so much longer than the sync interval.
constexpr int64_t kSyncPatienceNs = kNsPerSecond;
constexpr int64_t kQuietNs = 60 * kNsPerSecond;

double Seconds(int64_t ns) { return static_cast<double>(ns) / kNsPerSecond; }

struct Contents {
  std::optional<uint64_t> newest;  // position of the newest snapshot
  bool journal = false;
  uint64_t journal_bytes = 0;
};

absl::StatusOr<Contents> LookAt(Files* files) {
  GANNET_ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List());
  Contents contents;
  for (const std::string& name : names) {
    const std::optional<uint64_t> position = PositionOfSnapshot(name);
    if (position) contents.newest = std::max(contents.newest.value_or(0), *position);
    if (!FirstOfSegment(name)) continue;
    GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->Open(name));
    GANNET_ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
    contents.journal_bytes += bytes;
    contents.journal = true;
  }
  return contents;
}

}  // namespace

DiskLog::DiskLog(const Options& options)
    : options_(options),
      waiting_(options.changes != nullptr && options.sync == Journal::Sync::kAlways ? options.writes
                                                                                    : nullptr) {}

uint64_t DiskLog::SegmentBytesFor(uint64_t region_bytes) {
  return std::clamp(region_bytes / 16, kSegmentBytesMin, kSegmentBytesMax);
}

absl::StatusOr<std::unique_ptr<DiskLog>> DiskLog::Open(const Options& options, ServerTime now) {
  std::unique_ptr<DiskLog> log(new DiskLog(options));
  GANNET_ASSIGN_OR_RETURN(log->journal_id_, NumberOfDirectory(options.files, options.new_number));
  GANNET_RETURN_IF_ERROR(log->Restore(now));
  log->clock_note_.emplace(options.files, log->journal_id_, options.sync != Journal::Sync::kNone);
  ChangeStream* const changes = options.changes;
  if (changes == nullptr) return log;
  Writes* const waiting = log->waiting_;
  changes->BeginAt(log->journal_->appended());
  changes->Add(log.get(),
               waiting != nullptr ? ChangeStream::Need::kRequired : ChangeStream::Need::kHears);
  options.store->UseSink(changes);
  if (waiting != nullptr) {
    waiting->WaitFor(changes);
    // What is appended already is in the store.
    waiting->Publish(log->journal_->appended());
  }
  return log;
}

DiskLog::~DiskLog() {
  if (journal_ == nullptr || options_.changes == nullptr) return;
  options_.store->UseSink(nullptr);
  options_.changes->Remove(this);
}

absl::Status DiskLog::Restore(ServerTime now) {
  const int64_t start_ns = options_.clock();
  Files* const files = options_.files;
  Restorer restorer(options_.store, files->path(), now);
  const auto apply = [&](const Change& change) { return restorer.Apply(change); };
  GANNET_ASSIGN_OR_RETURN(Contents contents, LookAt(files));
  const uint64_t from = contents.newest.value_or(0);
  std::optional<SnapshotRead> snapshot;
  if (contents.newest) {
    GANNET_ASSIGN_OR_RETURN(snapshot, ReadSnapshot(files, SnapshotName(from), journal_id_, apply));
    snapshot->position = from;  // that of its name, by which it is found again
  }
  GANNET_ASSIGN_OR_RETURN(
      const JournalEnd end,
      ReadJournal({.files = files, .journal_id = journal_id_, .from = from}, apply));
  options_.store->BeginVersions(std::max(options_.first_version, restorer.version_max() + 2));
  GANNET_ASSIGN_OR_RETURN(contents, LookAt(files));  // the last segment was cut
  GANNET_ASSIGN_OR_RETURN(
      journal_,
      Journal::Create({.files = files,
                       .journal_id = journal_id_,
                       .position = end.position,
                       .sync = options_.sync,
                       .sync_interval_ns = options_.sync_interval_ns,
                       .segment_bytes = options_.segment_bytes,
                       .disk_bytes = contents.journal_bytes,
                       .waiting_bytes_max = options_.waiting_bytes_max,
                       .unsynced_ns_max = options_.unsynced_ns_max != 0
                                              ? options_.unsynced_ns_max
                                              : options_.sync_interval_ns + kSyncPatienceNs,
                       .refuses_for_age = options_.refuses_for_age}));
  for (const std::string& key : restorer.evicted()) {
    const Change gone = {
        .kind = Change::Kind::kDelete, .version = restorer.version_max() + 1, .key = key};
    while (!journal_->Append(gone, options_.clock())) {
      journal_->Flush(options_.clock());  // nobody else does yet
      GANNET_RETURN_IF_ERROR(journal_->status());
    }
  }
  snapshots_.emplace(Snapshots::Options{.files = files,
                                        .store = options_.store,
                                        .journal = journal_.get(),
                                        .owner = options_.owner,
                                        .waiting = waiting_,
                                        .wall = options_.wall,
                                        .journal_id = journal_id_,
                                        .segment_bytes = options_.segment_bytes},
                     snapshot);
  StatsReply stats{};
  options_.store->FillStats(&stats);
  restored_ =
      absl::StrCat("restored ", stats.items, " items from ", files->path(), " in ",
                   Seconds(options_.clock() - start_ns), " s: ", snapshot ? snapshot->items : 0,
                   " of a snapshot, then ", end.changes, " changes of the journal");
  if (end.torn_bytes > 0) {
    absl::StrAppend(&restored_, "; cut off ", end.torn_bytes,
                    " bytes of changes that were never confirmed as being on disk");
  }
  if (!restorer.evicted().empty()) {
    absl::StrAppend(&restored_, "; evicted ", restorer.evicted().size(), " for lack of memory");
  }
  return snapshots_->RemoveOld();
}

bool DiskLog::Take(const Change& change, ChangePlace* place) {
  const size_t bytes = RecordBytes(change.key.size(), change.value.size());
  const std::optional<ChangePlace> reserved = journal_->Reserve(bytes, options_.clock());
  if (!reserved) {
    CountNotTaken(takes());
    return false;
  }
  GANNET_CHECK(reserved->end == place->end, "the journal is not where the stream is");
  *place = *reserved;
  return true;
}

bool DiskLog::BeginUpdates(UpdateLane* /*lane*/) {
  const Takes now = takes();
  if (now == Takes::kNow) return true;
  CountNotTaken(now);
  return false;
}

void DiskLog::CountNotTaken(Takes why) {
  (why == Takes::kNot ? refused_ : put_off_).fetch_add(1, std::memory_order_relaxed);
}

void DiskLog::TakeUpdates(UpdateLane* lane, uint64_t offset) {
  if (lane->empty()) return;
  lane->Seal();
  const uint64_t end = journal_->AppendUpdates(*lane, options_.clock());
  GANNET_CHECK(end == lane->position() - offset, "the journal is not where the stream is");
}

// Only an error of the disk, or a lack of space, needs somebody's help.
ChangeConsumer::Takes DiskLog::takes() const {
  if (!journal_->status().ok()) return Takes::kNot;
  return journal_->Takes(options_.clock()) ? Takes::kNow : Takes::kLater;
}

void DiskLog::Fill(const Change& change, const ChangePlace& place) {
  journal_->Fill(change, place);
}

void DiskLog::Poll(int64_t now_ns) {
  journal_->Flush(now_ns);
  snapshots_->Poll(now_ns);
  if (const auto clock = ClockToNote()) clock_note_->Poll(*clock, now_ns);
  FailWaiting();
  Tell(now_ns);
  due_ns_ = now_ns + (snapshots_->writes() ? Snapshots::kStepPeriodNs
                      : needs_writer()     ? kLookPeriodNs
                                           : kWritePeriodNs);
  due_ns_ = std::min(due_ns_, journal_->sync_due_ns().value_or(due_ns_));
  if (options_.owner != nullptr) options_.owner->OnPoll();
}

// A member of a group that has not all items yet has nothing to note.
std::optional<ServerTime> DiskLog::ClockToNote() const {
  if (journal_->failed() || !snapshots_->MayBegin()) return std::nullopt;
  const ServerTime clock = options_.store->Now({});
  return clock == ServerTime() ? std::nullopt : std::optional(clock);
}

void DiskLog::FailWaiting() {
  if (waiting_ != nullptr && journal_->failed()) waiting_->Fail();
}

void DiskLog::Tell(int64_t now_ns) {
  const absl::Status status = journal_->status();
  if (status.code() != told_.code()) {
    if (journal_->failed()) {
      LOG(ERROR) << "the disk has failed, and no write is taken any more: " << status.message()
                 << ". Mend the disk and start the server again; it serves what it has until then";
    } else if (!status.ok()) {
      LOG(ERROR) << "writes are refused until there is space: " << status.message();
    } else {
      LOG(INFO) << "the disk takes changes again";
    }
    told_ = status;
  }
  const uint64_t refused = refused_.load(std::memory_order_relaxed);
  const uint64_t put_off = put_off_.load(std::memory_order_relaxed);
  if (now_ns < quiet_until_ns_ || (refused == refused_told_ && put_off == put_off_told_)) return;
  if (refused != refused_told_) {
    LOG(WARNING) << "the disk has not taken " << refused - refused_told_ << " writes"
                 << (status.ok() ? "" : ": ") << status.message();
  }
  if (put_off != put_off_told_) {
    LOG(WARNING) << "writes wait because the disk is slower than they come, or busy cores let its "
                    "thread wait; told clients "
                 << put_off - put_off_told_ << " times to send one again";
  }
  refused_told_ = refused;
  put_off_told_ = put_off;
  quiet_until_ns_ = now_ns + kQuietNs;
}

absl::Status DiskLog::Close(int64_t now_ns) {
  const absl::Status status = journal_->SyncAll(now_ns);
  if (const auto clock = ClockToNote()) clock_note_->Write(*clock);
  FailWaiting();
  if (options_.owner != nullptr) options_.owner->OnPoll();
  return status;
}

bool DiskLog::IsBehind(uint64_t bytes) const {
  const uint64_t written = journal_->written();
  return journal_->appended() - written > bytes || journal_->IsOld(options_.clock());
}

void DiskLog::FillStats(StatsReply* stats) const {
  const uint64_t synced = journal_->synced();
  const int64_t since_ns = journal_->unsynced_since_ns();
  stats->disk_sync = static_cast<uint64_t>(options_.sync) + 1;
  stats->disk_bytes = journal_->disk_bytes();
  // Loaded after `synced`, so it is not less.
  stats->disk_behind_bytes = journal_->appended() - synced;
  if (since_ns != 0) {
    const int64_t behind_ns = std::max<int64_t>(options_.clock() - since_ns, 0);
    stats->disk_behind_ms = static_cast<uint64_t>(behind_ns / kNsPerMs);
  }
  stats->disk_refused = refused_.load(std::memory_order_relaxed);
  snapshots_->FillStats(stats);
}

void DiskLog::FillStorage(StorageReply* reply) const {
  StatsReply stats{};
  FillStats(&stats);
  reply->disk_sync = stats.disk_sync;
  reply->disk_behind_bytes = stats.disk_behind_bytes;
  reply->disk_behind_ms = stats.disk_behind_ms;
  CopyText(options_.files->path(), reply->directory);
  snapshots_->FillStorage(reply);
}

absl::StatusOr<DirectoryRead> ReadDirectory(Files* files,
                                            absl::FunctionRef<absl::Status(const Change&)> apply) {
  GANNET_ASSIGN_OR_RETURN(const Contents contents, LookAt(files));
  if (!contents.newest && !contents.journal) {
    return absl::NotFoundError(
        absl::StrCat(files->path(),
                     " has neither a snapshot nor a journal of kvserver: copy a file snapshot-* "
                     "there, or a whole directory of --data"));
  }
  SnapshotRead snapshot;
  if (contents.newest) {
    GANNET_ASSIGN_OR_RETURN(snapshot, ReadSnapshot(files, SnapshotName(*contents.newest),
                                                   /*journal_id=*/std::nullopt, apply));
  } else {
    GANNET_ASSIGN_OR_RETURN(snapshot.journal_id, ReadNumberOfDirectory(files));
  }
  if (!contents.journal) return DirectoryRead{.snapshot_items = snapshot.items};
  GANNET_ASSIGN_OR_RETURN(const JournalEnd end, ReadJournal({.files = files,
                                                             .journal_id = snapshot.journal_id,
                                                             .from = contents.newest.value_or(0),
                                                             .cut = false},
                                                            apply));
  return DirectoryRead{.snapshot_items = snapshot.items,
                       .journal_changes = end.changes,
                       .torn_bytes = end.torn_bytes};
}

}  // namespace gannet
