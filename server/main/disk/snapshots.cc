// A snapshot goes from Begin over many Steps to Finish, or to GiveUp. It gets its name only when
// all that its walk may have seen is synced in the journal.

#include "server/main/disk/snapshots.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "glog/logging.h"

namespace gannet {
namespace {

constexpr size_t kStepBytes = 256 << 10;
constexpr int kStepHomes = 1024;
constexpr int64_t kAfterFailedNs = 60 * kNsPerSecond;
// So many segments of the journal may be there before the first snapshot.
constexpr uint64_t kSegmentsMin = 2;

}  // namespace

Snapshots::Snapshots(const Options& options, const std::optional<SnapshotRead>& newest)
    : options_(options) {
  if (!newest) return;
  newest_ = newest->position;
  newest_bytes_ = newest->bytes;
  bytes_ = newest->bytes;
  tries_.Found({.position = newest->position, .items = newest->items, .bytes = newest->bytes});
}

void Snapshots::Poll(int64_t now_ns) {
  absl::Status status;
  if (writes()) {
    // Poll is called more often while writes wait for it.
    if (options_.journal->failed()) status = options_.journal->status();
    if (status.ok() && now_ns >= next_step_ns_) status = Step(now_ns);
  } else if (IsDue(now_ns)) {
    began_ns_ = now_ns;
    status = Begin();
  }
  if (!status.ok()) GiveUp(status, now_ns);
}

// The journal since the last snapshot takes at most half of what that takes. So the directory has
// about one and a half times the items, and two and a half times while a snapshot is written.
bool Snapshots::IsDue(int64_t now_ns) const {
  if (!MayBegin()) return false;
  if (tries_.asked()) return true;
  if (now_ns < none_until_ns_ || options_.journal->failed()) return false;
  const uint64_t since = options_.journal->appended() - newest_.value_or(0);
  return since > std::max(newest_bytes_ / 2, kSegmentsMin * options_.segment_bytes);
}

absl::Status Snapshots::Begin() {
  tries_.Begin();
  if (options_.journal->failed()) return options_.journal->status();
  visit_position_ = 0;
  // Every change below this position was made before the walk begins, or its key's lock is held
  // until it is made. So the walk finds it. A waiting write is not made yet.
  const std::optional<uint64_t> given =
      options_.owner != nullptr ? options_.owner->SnapshotAt() : std::nullopt;
  const uint64_t own = options_.waiting != nullptr ? options_.waiting->published_position()
                                                   : options_.journal->appended();
  GANNET_ASSIGN_OR_RETURN(
      writer_, SnapshotWriter::Create(options_.files, options_.journal_id, given.value_or(own)));
  return absl::OkStatus();
}

absl::Status Snapshots::Step(int64_t now_ns) {
  next_step_ns_ = now_ns + kStepPeriodNs;
  const auto add = [this](const Change& item) { writer_->Add(item); };
  for (int homes = 0; homes < kStepHomes && writer_->waiting_bytes() < kStepBytes; ++homes) {
    const std::optional<uint64_t> next = options_.store->VisitHome(visit_position_, add);
    if (!next) break;
    visit_position_ = *next;
    if (visit_position_ == 0) return Finish(now_ns);
  }
  return writer_->Write();
}

absl::Status Snapshots::Finish(int64_t now_ns) {
  GANNET_RETURN_IF_ERROR(writer_->Complete());
  // Whatever the walk saw is in the journal. Once that is on disk, a restore that makes the
  // journal's changes again ends with the journal's end, and not with something in between.
  GANNET_RETURN_IF_ERROR(options_.journal->SyncAll(now_ns));
  if (!MayBegin()) {
    return absl::AbortedError("the walk may have seen what is not in the journal");
  }
  GANNET_RETURN_IF_ERROR(writer_->Name());
  newest_ = writer_->position();
  newest_bytes_ = writer_->bytes();
  bytes_.store(newest_bytes_, std::memory_order_relaxed);
  written_.fetch_add(1, std::memory_order_relaxed);
  tries_.Complete({.position = *newest_,
                   .items = writer_->items(),
                   .bytes = newest_bytes_,
                   .completed_ms = options_.wall.Now().ms()});
  LOG(INFO) << "wrote a snapshot of " << writer_->items() << " items, " << newest_bytes_
            << " bytes, in " << static_cast<double>(now_ns - began_ns_) / kNsPerSecond << " s";
  writer_ = nullptr;
  if (options_.owner != nullptr) options_.owner->OnSnapshot();
  if (absl::Status removed = RemoveOld(); !removed.ok()) {
    LOG(ERROR) << "cannot remove what the snapshot replaces: " << removed.message()
               << "; the next snapshot tries again";
  }
  return absl::OkStatus();
}

void Snapshots::GiveUp(const absl::Status& why, int64_t now_ns) {
  LOG(ERROR) << "no snapshot was written, so the journal cannot be cut: " << why.message()
             << (options_.journal->failed() ? "" : "; the next try follows in a minute");
  writer_ = nullptr;
  tries_.Fail(std::string(why.message()));
  none_until_ns_ = now_ns + kAfterFailedNs;
  // Gives its space back.
  options_.files->Remove(kNewSnapshotName).IgnoreError();
}

absl::Status Snapshots::RemoveOld() {
  Files* const files = options_.files;
  GANNET_ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List());
  bool removed = false;
  for (const std::string& name : names) {
    const std::optional<uint64_t> position = PositionOfSnapshot(name);
    const bool old = position ? position != newest_ : name == kNewSnapshotName;
    if (!old) continue;
    GANNET_RETURN_IF_ERROR(files->Remove(name));
    removed = true;
  }
  if (removed) GANNET_RETURN_IF_ERROR(files->SyncDirectory());
  return options_.journal->Trim(newest_.value_or(0));
}

void Snapshots::FillStats(StatsReply* stats) const {
  stats->disk_bytes += bytes_.load(std::memory_order_relaxed);
  stats->disk_snapshots = written_.load(std::memory_order_relaxed);
}

}  // namespace gannet
