#include "server/journal/journal.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/journal/segment.h"

namespace gannet {
namespace {

// After there was no space.
constexpr int64_t kRetryNs = kNsPerSecond;
// With sync always, so much of a segment is written with zeros before records come there.
constexpr uint64_t kZeroedBytes = 1 << 20;
// Not for batches that are longer: zeros would cost the disk more than they save.
constexpr uint64_t kZeroedBatchMax = kZeroedBytes / 16;

// A sync that failed is never tried again, whatever the reason.
absl::Status NotAgain(const absl::Status& status) {
  return status.ok() ? status : absl::InternalError(status.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Create(const Options& options) {
  std::unique_ptr<Journal> journal(new Journal(options));
  GANNET_RETURN_IF_ERROR(journal->BeginSegment(options.position));
  return journal;
}

Journal::Journal(const Options& options)
    : options_(options),
      appended_(options.position),
      synced_(options.position),
      disk_bytes_(options.disk_bytes),
      written_(options.position) {}

bool Journal::Takes(int64_t now_ns) const {
  if (failed() || waiting_.bytes.size() >= options_.waiting_bytes_max) return false;
  const int64_t since_ns = unsynced_since_ns();
  return since_ns == 0 || options_.sync == Sync::kNone ||
         now_ns - since_ns <= options_.unsynced_ns_max;
}

absl::Status Journal::Taking(int64_t now_ns) const {
  MutexLock lock(mutex_);
  if (Takes(now_ns)) return absl::OkStatus();
  if (!status_.ok()) return status_;
  return absl::ResourceExhaustedError("the disk is slower than changes come");
}

std::optional<uint64_t> Journal::Append(const Change& change, int64_t now_ns) {
  const size_t bytes = RecordBytes(change.key.size(), change.value.size());
  MutexLock lock(mutex_);
  if (!Takes(now_ns)) return std::nullopt;
  if (unsynced_since_ns() == 0) unsynced_since_ns_.store(now_ns, std::memory_order_relaxed);
  if (waiting_.bytes.empty()) waiting_.since_ns = now_ns;
  const uint64_t position = appended();
  const size_t at = waiting_.bytes.size();
  waiting_.bytes.resize(at + bytes);
  EncodeRecord(change, options_.journal_id, position, synced(),
               std::span(waiting_.bytes).subspan(at));
  // Relaxed: whoever needs the bytes takes the mutex.
  appended_.store(position + bytes, std::memory_order_relaxed);
  return position + bytes;
}

void Journal::Flush(int64_t now_ns) {
  if (failed()) return;
  retry_ns_.reset();
  absl::Status status = WriteBatch();
  if (absl::IsResourceExhausted(status)) retry_ns_ = now_ns + kRetryNs;
  // What is written is synced in time, even if there is no space for more.
  if ((status.ok() || retry_ns_) && SyncDue(now_ns)) {
    last_sync_ns_ = now_ns;
    status.Update(SyncSegment());
  }
  Note(status);
}

void Journal::TakeBatch() {
  MutexLock lock(mutex_);
  std::swap(batch_, waiting_);
}

absl::Status Journal::WriteBatch() {
  if (batch_.bytes.empty()) TakeBatch();
  if (batch_.bytes.empty()) return absl::OkStatus();
  // Nothing is written behind what was reserved. So a batch that is too long for an empty segment
  // gets a longer one in its place.
  if (written_ - segment_first_ + batch_.bytes.size() > segment_space_) {
    if (written_ != synced()) GANNET_RETURN_IF_ERROR(SyncSegment());  // invariant 3
    GANNET_RETURN_IF_ERROR(BeginSegment(written_));
  }
  GANNET_RETURN_IF_ERROR(ZeroAhead());
  GANNET_RETURN_IF_ERROR(
      segment_->WriteAt(kSegmentHeaderBytes + written_ - segment_first_, batch_.bytes));
  written_ += batch_.bytes.size();
  if (written_since_ns_ == 0) written_since_ns_ = batch_.since_ns;
  batch_.bytes.clear();
  // One large value does not keep its memory for ever.
  if (batch_.bytes.capacity() > options_.waiting_bytes_max) batch_.bytes.shrink_to_fit();
  return absl::OkStatus();
}

// A file system notes in its own journal which part of a reserved file was written for the first
// time, so a sync after such a write waits for that journal too, and takes twice as long. To write
// zeros makes that so for many syncs at once. The zeros change nothing: what is not written yet is
// zero, and no record is there before it is written behind them.
absl::Status Journal::ZeroAhead() {
  const uint64_t end = written_ + batch_.bytes.size();
  if (options_.sync != Sync::kAlways || end <= zeroed_ || batch_.bytes.size() > kZeroedBatchMax) {
    return absl::OkStatus();
  }
  const uint64_t until = std::min(end + kZeroedBytes, segment_first_ + segment_space_);
  if (until <= end) return absl::OkStatus();
  const std::vector<std::byte> zeros(until - end);
  GANNET_RETURN_IF_ERROR(segment_->WriteAt(kSegmentHeaderBytes + end - segment_first_, zeros));
  zeroed_ = until;
  return absl::OkStatus();
}

// The file gets its name when it is complete, so a segment never has half a header.
absl::Status Journal::BeginSegment(uint64_t first) {
  Files& files = *options_.files;
  // An earlier try may have left it.
  if (absl::Status removed = files.Remove(kNewSegmentName);
      !removed.ok() && !absl::IsNotFound(removed)) {
    return removed;
  }
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files.Create(kNewSegmentName));
  const uint64_t space = std::max<uint64_t>(options_.segment_bytes, batch_.bytes.size());
  GANNET_RETURN_IF_ERROR(file->Reserve(kSegmentHeaderBytes + space));
  GANNET_RETURN_IF_ERROR(file->WriteAt(
      0, EncodeSegmentHeader(options_.journal_id, first, kSegmentHeaderBytes + space)));
  GANNET_RETURN_IF_ERROR(NotAgain(file->Sync()));
  GANNET_RETURN_IF_ERROR(files.Rename(kNewSegmentName, SegmentName(first)));
  GANNET_RETURN_IF_ERROR(NotAgain(files.SyncDirectory()));
  if (segment_ != nullptr && first == segment_first_) {  // this one took its name
    disk_bytes_.fetch_sub(kSegmentHeaderBytes + segment_space_, std::memory_order_relaxed);
  }
  segment_ = std::move(file);
  segment_first_ = first;
  zeroed_ = first;
  segment_space_ = space;
  disk_bytes_.fetch_add(kSegmentHeaderBytes + space, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status Journal::SyncSegment() {
  GANNET_RETURN_IF_ERROR(NotAgain(segment_->Sync()));
  written_since_ns_ = 0;
  // Release: whoever acts because of this position does so after the sync.
  synced_.store(written_, std::memory_order_release);
  UpdateUnsynced();
  return absl::OkStatus();
}

void Journal::UpdateUnsynced() {
  MutexLock lock(mutex_);
  int64_t since_ns = 0;
  if (!batch_.bytes.empty()) {
    since_ns = batch_.since_ns;
  } else if (!waiting_.bytes.empty()) {
    since_ns = waiting_.since_ns;
  }
  unsynced_since_ns_.store(since_ns, std::memory_order_relaxed);
}

bool Journal::SyncDue(int64_t now_ns) const {
  if (written_ == synced()) return false;
  switch (options_.sync) {
    case Sync::kNone:
      return false;
    case Sync::kInterval:
      return now_ns - last_sync_ns_ >= options_.sync_interval_ns;
    case Sync::kAlways:
      return true;
  }
  return true;
}

std::optional<int64_t> Journal::flush_due_ns() const {
  if (failed()) return std::nullopt;
  std::optional<int64_t> due_ns = retry_ns_;
  if (written_ != synced() && options_.sync == Sync::kInterval) {
    const int64_t sync_ns = last_sync_ns_ + options_.sync_interval_ns;
    due_ns = std::min(due_ns.value_or(sync_ns), sync_ns);
  }
  return due_ns;
}

absl::Status Journal::SyncAll(int64_t now_ns) {
  // The first writes what a full disk kept back, the second what was appended meanwhile.
  Flush(now_ns);
  Flush(now_ns);
  if (status().ok() && written_ != synced()) Note(SyncSegment());
  return status();
}

absl::Status Journal::Trim(uint64_t position) {
  GANNET_ASSIGN_OR_RETURN(const std::vector<std::string> names, options_.files->List());
  std::vector<uint64_t> firsts;
  for (const std::string& name : names) {
    if (const auto first = FirstOfSegment(name)) firsts.push_back(*first);
  }
  bool removed = false;
  for (size_t i = 0; i + 1 < firsts.size() && firsts[i + 1] <= position; ++i) {
    const std::string name = SegmentName(firsts[i]);
    GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, options_.files->Open(name));
    GANNET_ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
    GANNET_RETURN_IF_ERROR(options_.files->Remove(name));
    disk_bytes_.fetch_sub(std::min(bytes, disk_bytes()), std::memory_order_relaxed);
    removed = true;
  }
  return removed ? options_.files->SyncDirectory() : absl::OkStatus();
}

void Journal::Note(const absl::Status& status) {
  MutexLock lock(mutex_);
  if (status == status_) return;
  status_ = status;
  // Release: whoever sees the flag finds the reason.
  if (!status.ok() && !absl::IsResourceExhausted(status)) {
    failed_.store(true, std::memory_order_release);
  }
}

absl::Status Journal::status() const {
  MutexLock lock(mutex_);
  return status_;
}

}  // namespace gannet
