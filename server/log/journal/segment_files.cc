// A file becomes a segment in two steps: Make takes its space, and Name gives it the header and the
// name, when the journal knows where it begins.

#include "server/log/journal/segment_files.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/log/journal/segment.h"

namespace gannet {
namespace {

// So much of a segment is written with zeros before records come there.
constexpr uint64_t kZeroedBytes = 1 << 20;
// Not for more records at once: zeros would cost the disk more than they save.
constexpr uint64_t kZeroedRecordsMax = kZeroedBytes / 16;

}  // namespace

absl::Status NotAgain(const absl::Status& status) {
  return status.ok() ? status : absl::InternalError(status.message());
}

absl::StatusOr<std::unique_ptr<File>> SegmentFiles::Make() {
  // An earlier try may have left it.
  if (absl::Status removed = files_.Remove(kNewSegmentName);
      !removed.ok() && !absl::IsNotFound(removed)) {
    return removed;
  }
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Create(kNewSegmentName));
  GANNET_RETURN_IF_ERROR(file->Reserve(kSegmentHeaderBytes + segment_bytes_));
  return file;
}

// The file gets its name when it is complete, so a segment never has half a header.
absl::Status SegmentFiles::Name(File* file, uint64_t first) {
  GANNET_RETURN_IF_ERROR(file->WriteAt(
      0, EncodeSegmentHeader(journal_id_, first, kSegmentHeaderBytes + segment_bytes_)));
  GANNET_RETURN_IF_ERROR(NotAgain(file->Sync()));
  GANNET_RETURN_IF_ERROR(files_.Rename(kNewSegmentName, SegmentName(first)));
  return NotAgain(files_.SyncDirectory());
}

// What is written to a file without a name is gone with the process, however often it is synced.
absl::Status SegmentFiles::Find(uint64_t first) const {
  if (!absl::IsNotFound(files_.Find(SegmentName(first)))) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      files_.path(), "/", SegmentName(first),
      " was removed or renamed while the server runs, so its items are in its memory only. Bring "
      "the directory back, or read the items out before the server ends (kvcli --json scan "
      "--values)"));
}

absl::Status SegmentFiles::Trim(uint64_t position) {
  GANNET_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List());
  std::vector<uint64_t> firsts;
  for (const std::string& name : names) {
    if (const auto first = FirstOfSegment(name)) firsts.push_back(*first);
  }
  bool removed = false;
  for (size_t i = 0; i + 1 < firsts.size() && firsts[i + 1] <= position; ++i) {
    const std::string name = SegmentName(firsts[i]);
    GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files_.Open(name));
    GANNET_ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
    GANNET_RETURN_IF_ERROR(files_.Remove(name));
    disk_bytes_.fetch_sub(std::min(bytes, disk_bytes()), std::memory_order_relaxed);
    removed = true;
  }
  return removed ? files_.SyncDirectory() : absl::OkStatus();
}

void SegmentWriter::Use(std::unique_ptr<File> file, uint64_t first, uint64_t written) {
  file_ = std::move(file);
  first_ = first;
  space_ = std::max(files_.segment_bytes(), written - first);
  zeroed_ = written;
  files_.AddDiskBytes(kSegmentHeaderBytes + space_);
}

void SegmentWriter::BeginNext(File* next, uint64_t first) {
  next_ = next;
  next_first_ = first;
}

// A segment that is full grows until the next one is there, so nobody waits for that.
absl::Status SegmentWriter::Write(uint64_t position, std::span<const std::byte> records) {
  const uint64_t end = position + records.size();
  GANNET_RETURN_IF_ERROR(ZeroAhead(end, records.size()));
  GANNET_RETURN_IF_ERROR(file_->WriteAt(kSegmentHeaderBytes + position - first_, records));
  if (next_ != nullptr) {
    GANNET_RETURN_IF_ERROR(next_->WriteAt(kSegmentHeaderBytes + position - next_first_, records));
  }
  if (end - first_ > space_) {
    files_.AddDiskBytes(end - first_ - space_);
    space_ = end - first_;
  }
  return absl::OkStatus();
}

// A file system notes in its own journal which part of a reserved file was written for the first
// time, so a sync after such a write waits for that journal too, and takes twice as long. To write
// zeros makes that so for many syncs at once. The zeros change nothing: what is not written yet is
// zero, and no record is there before it is written behind them.
absl::Status SegmentWriter::ZeroAhead(uint64_t end, size_t bytes) {
  if (!zeroes_ahead_ || end <= zeroed_ || bytes > kZeroedRecordsMax) return absl::OkStatus();
  const uint64_t until = std::min(end + kZeroedBytes, first_ + space_);
  if (until <= end) return absl::OkStatus();
  const std::vector<std::byte> zeros(until - end);
  GANNET_RETURN_IF_ERROR(file_->WriteAt(kSegmentHeaderBytes + end - first_, zeros));
  zeroed_ = until;
  return absl::OkStatus();
}

}  // namespace gannet
