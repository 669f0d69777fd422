#include "server/journal/journal.h"

#include <algorithm>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "server/changes/record.h"
#include "server/journal/segment.h"

namespace gannet {
namespace {

// After there was no space.
constexpr int64_t kRetryNs = kNsPerSecond;
// A chunk has room for so much, and for one record at least.
constexpr size_t kChunkBytes = 256 << 10;
// With sync always, so much of a segment is written with zeros before records come there.
constexpr uint64_t kZeroedBytes = 1 << 20;
// Not for chunks that are longer: zeros would cost the disk more than they save.
constexpr uint64_t kZeroedChunkMax = kZeroedBytes / 16;

// A sync that failed is never tried again, whatever the reason.
absl::Status NotAgain(const absl::Status& status) {
  return status.ok() ? status : absl::InternalError(status.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Create(const Options& options) {
  std::unique_ptr<Journal> journal(new Journal(options));
  GANNET_RETURN_IF_ERROR(journal->BeginSegment(options.position, 0));
  return journal;
}

Journal::Journal(const Options& options)
    : options_(options),
      appended_(options.position),
      synced_(options.position),
      disk_bytes_(options.disk_bytes),
      written_(options.position) {}

bool Journal::Takes(int64_t now_ns) const {
  if (failed() || waiting_bytes_ >= options_.waiting_bytes_max) return false;
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
  const auto place = Reserve(RecordBytes(change.key.size(), change.value.size()), now_ns);
  if (!place) return std::nullopt;
  Fill(change, *place);
  return place->end;
}

std::optional<ChangePlace> Journal::Reserve(size_t record_bytes, int64_t now_ns) {
  MutexLock lock(mutex_);
  if (!Takes(now_ns)) return std::nullopt;
  if (unsynced_since_ns() == 0) unsynced_since_ns_.store(now_ns, std::memory_order_relaxed);
  if (waiting_.empty() || waiting_.back()->capacity - waiting_.back()->reserved < record_bytes) {
    AddChunk(record_bytes, now_ns);
  }
  Chunk& chunk = *waiting_.back();
  chunk.reserved += record_bytes;
  waiting_bytes_ += record_bytes;
  const uint64_t end = appended() + record_bytes;
  // Relaxed: whoever needs the bytes waits until their chunk is filled.
  appended_.store(end, std::memory_order_relaxed);
  return ChangePlace{.end = end, .room = &chunk};
}

// The chunk stays until it is filled.
void Journal::Fill(const Change& change, const ChangePlace& place) {
  const size_t bytes = RecordBytes(change.key.size(), change.value.size());
  const uint64_t position = place.end - bytes;
  Chunk& chunk = *static_cast<Chunk*>(place.room);
  EncodeRecord(change, options_.journal_id, position, synced(),
               std::span(chunk.bytes.get() + (position - chunk.first), bytes));
  // Release: who sees that the whole chunk is filled sees the bytes of everybody who filled it,
  // because each of these additions continues the release sequence of those before it.
  chunk.filled.fetch_add(bytes, std::memory_order_release);
}

void Journal::AddChunk(size_t bytes, int64_t now_ns) {
  auto chunk = std::move(spare_);
  if (chunk == nullptr || chunk->capacity < bytes) {
    chunk = std::make_unique<Chunk>();
    chunk->capacity = std::max(kChunkBytes, bytes);
    chunk->bytes = std::make_unique_for_overwrite<std::byte[]>(chunk->capacity);
  }
  chunk->first = appended();
  chunk->since_ns = now_ns;
  chunk->reserved = 0;
  chunk->filled.store(0, std::memory_order_relaxed);  // nobody has it yet
  waiting_.push_back(std::move(chunk));
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
  waiting_bytes_ = 0;
}

absl::Status Journal::WriteBatch() {
  if (batch_.empty()) TakeBatch();
  while (!batch_.empty()) {
    Chunk& chunk = *batch_.front();
    // Acquire: with Fill. Whoever fills it now lets the journal be flushed again afterwards.
    if (chunk.filled.load(std::memory_order_acquire) != chunk.reserved) break;
    GANNET_RETURN_IF_ERROR(WriteChunk(chunk));
    GiveBack(std::move(batch_.front()));
    batch_.pop_front();
  }
  return absl::OkStatus();
}

absl::Status Journal::WriteChunk(const Chunk& chunk) {
  // Nothing is written behind what was reserved. So a chunk that is too long for an empty segment
  // gets a longer one in its place.
  if (written_ - segment_first_ + chunk.reserved > segment_space_) {
    if (written_ != synced()) GANNET_RETURN_IF_ERROR(SyncSegment());  // invariant 3
    GANNET_RETURN_IF_ERROR(BeginSegment(written_, chunk.reserved));
  }
  GANNET_RETURN_IF_ERROR(ZeroAhead(chunk.reserved));
  GANNET_RETURN_IF_ERROR(segment_->WriteAt(kSegmentHeaderBytes + written_ - segment_first_,
                                           std::span(chunk.bytes.get(), chunk.reserved)));
  written_ += chunk.reserved;
  if (written_since_ns_ == 0) written_since_ns_ = chunk.since_ns;
  return absl::OkStatus();
}

// A chunk for one large value does not keep its memory.
void Journal::GiveBack(std::unique_ptr<Chunk> chunk) {
  if (chunk->capacity > kChunkBytes) return;
  MutexLock lock(mutex_);
  spare_ = std::move(chunk);
}

// A file system notes in its own journal which part of a reserved file was written for the first
// time, so a sync after such a write waits for that journal too, and takes twice as long. To write
// zeros makes that so for many syncs at once. The zeros change nothing: what is not written yet is
// zero, and no record is there before it is written behind them.
absl::Status Journal::ZeroAhead(size_t bytes) {
  const uint64_t end = written_ + bytes;
  if (options_.sync != Sync::kAlways || end <= zeroed_ || bytes > kZeroedChunkMax) {
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
absl::Status Journal::BeginSegment(uint64_t first, size_t bytes) {
  Files& files = *options_.files;
  // An earlier try may have left it.
  if (absl::Status removed = files.Remove(kNewSegmentName);
      !removed.ok() && !absl::IsNotFound(removed)) {
    return removed;
  }
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files.Create(kNewSegmentName));
  const uint64_t space = std::max<uint64_t>(options_.segment_bytes, bytes);
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
  if (!batch_.empty()) {
    since_ns = batch_.front()->since_ns;
  } else if (!waiting_.empty()) {
    since_ns = waiting_.front()->since_ns;
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
  // The first time writes what a full disk kept back, the second what was appended meanwhile.
  for (int times = 0; times < 2; ++times) {
    Flush(now_ns);
    while (status().ok() && !batch_.empty()) {
      std::this_thread::yield();  // somebody fills a chunk
      Flush(now_ns);
    }
  }
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
