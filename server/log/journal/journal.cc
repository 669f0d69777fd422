// Two locks: mutex_ guards what is appended and not written yet, write_mutex_ the files. Who needs
// both takes write_mutex_ first. A change takes its place under mutex_ and is copied outside of it,
// so a chunk is written only when all of its bytes are filled. Any failure of a write or a sync but
// a lack of space is final: Note keeps the first one, and nothing is tried again.

#include "server/log/journal/journal.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "server/log/changes/record.h"
#include "server/log/journal/segment.h"

namespace gannet {
namespace {

// A chunk has room for so much, and for one record at least.
constexpr size_t kChunkBytes = 256 << 10;
// With sync always, so much of a segment is written with zeros before records come there.
constexpr uint64_t kZeroedBytes = 1 << 20;
// Not for chunks that are longer: zeros would cost the disk more than they save.
constexpr uint64_t kZeroedChunkMax = kZeroedBytes / 16;

// How often somebody looks whether the segment is still there.
constexpr int64_t kLookNs = kNsPerSecond;
// People hear of changes that wait to be written for so long.
constexpr int64_t kLongUnwrittenNs = kNsPerSecond;

// A sync that failed is never tried again, whatever the reason.
absl::Status NotAgain(const absl::Status& status) {
  return status.ok() ? status : absl::InternalError(status.message());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Create(const Options& options) {
  std::unique_ptr<Journal> journal(new Journal(options));
  const absl::Status begun = journal->BeginFirstSegment();
  if (!begun.ok() && !absl::IsResourceExhausted(begun)) return begun;
  journal->Note(kSyncing, begun);
  return journal;
}

Journal::Journal(const Options& options)
    : options_(options),
      appended_(options.position),
      synced_(options.position),
      disk_bytes_(options.disk_bytes),
      written_(options.position) {}

bool Journal::IsOld(int64_t now_ns, int64_t unwritten_ns_max) const {
  const auto waits_longer = [now_ns](int64_t since_ns, int64_t max_ns) {
    return since_ns != 0 && now_ns - since_ns > max_ns;
  };
  return (options_.sync != Sync::kNone &&
          waits_longer(unsynced_since_ns(), options_.unsynced_ns_max)) ||
         (options_.sync != Sync::kAlways && waits_longer(unwritten_since_ns(), unwritten_ns_max));
}

bool Journal::Takes(int64_t now_ns, int64_t unwritten_ns_max) const {
  return status_[kWriting].ok() && status_[kSyncing].ok() &&
         waiting_bytes_ < options_.waiting_bytes_max &&
         !(options_.refuses_for_age && IsOld(now_ns, unwritten_ns_max));
}

bool Journal::Takes(int64_t now_ns) const {
  MutexLock lock(mutex_);
  return Takes(now_ns, options_.unwritten_ns_max);
}

absl::Status Journal::Taking(int64_t now_ns) const {
  if (absl::Status why_not = status(); !why_not.ok()) return why_not;
  const int64_t long_ns = std::max(options_.unwritten_ns_max, kLongUnwrittenNs);
  MutexLock lock(mutex_);
  if (Takes(now_ns, long_ns)) return absl::OkStatus();
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
  if (!Takes(now_ns, options_.unwritten_ns_max)) return std::nullopt;
  return Enter(record_bytes, now_ns);
}

ChangePlace Journal::Enter(size_t record_bytes, int64_t now_ns) {
  if (unsynced_since_ns() == 0) unsynced_since_ns_.store(now_ns, std::memory_order_relaxed);
  if (unwritten_since_ns() == 0) unwritten_since_ns_.store(now_ns, std::memory_order_relaxed);
  if (waiting_.empty() || waiting_.back()->capacity - waiting_.back()->reserved < record_bytes) {
    AddChunk(record_bytes, now_ns);
  }
  Chunk& chunk = *waiting_.back();
  chunk.reserved += record_bytes;
  waiting_bytes_ += record_bytes;
  const uint64_t end = appended() + record_bytes;
  // Relaxed: whoever needs the bytes waits until their chunk is filled.
  appended_.store(end, std::memory_order_relaxed);
  return {.end = end, .room = &chunk};
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

uint64_t Journal::AppendUpdates(const UpdateLane& lane, int64_t now_ns) {
  const std::span<const std::byte> bodies = lane.bodies();
  const size_t bytes = lane.position() - lane.from();
  ChangePlace place;
  {
    MutexLock lock(mutex_);
    place = Enter(bytes, now_ns);
    Chunk& chunk = *static_cast<Chunk*>(place.room);
    chunk.updates.push_back({.at = place.end - bytes - chunk.first,
                             .record_bytes = bytes,
                             .body_bytes = bodies.size()});
  }
  Chunk& chunk = *static_cast<Chunk*>(place.room);
  std::memcpy(chunk.bytes.get() + (place.end - chunk.first) - bodies.size(), bodies.data(),
              bodies.size());
  chunk.filled.fetch_add(bytes, std::memory_order_release);  // as in Fill
  return place.end;
}

// A record ends where the next body begins, or before. So it lies over its own body, which is
// copied, and over none that is still to be read.
void Journal::MakeRecords(Chunk* chunk) {
  std::array<std::byte, UpdateLane::kMemoryMin> body;
  Change put;
  for (const Updates& updates : chunk->updates) {
    std::byte* const room = chunk->bytes.get() + updates.at;
    const std::span<const std::byte> bodies(room + updates.record_bytes - updates.body_bytes,
                                            updates.body_bytes);
    for (const PlacedUpdate& update : UpdateBodies(bodies, chunk->first + updates.at)) {
      GANNET_CHECK(update.bytes <= body.size(), "an update is longer than it may be");
      std::memcpy(body.data(), update.body, update.bytes);
      DecodeUpdateBody(body.data(), &put);
      const size_t bytes = update.record_bytes();
      const uint64_t position = update.position - bytes;
      EncodeRecord(put, options_.journal_id, position, synced(),
                   std::span(chunk->bytes.get() + (position - chunk->first), bytes));
    }
  }
  chunk->updates.clear();
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
  chunk->updates.clear();
  chunk->filled.store(0, std::memory_order_relaxed);  // nobody has it yet
  waiting_.push_back(std::move(chunk));
}

bool Journal::Write() {
  if (failed()) return false;
  MutexLock writing(write_mutex_);
  const absl::Status status = WriteBatch();
  Note(kWriting, status);
  if (!status.ok()) return false;
  MutexLock lock(mutex_);
  return !batch_.empty() || waiting_bytes_ >= kChunkBytes;
}

void Journal::Flush(int64_t now_ns) {
  Write();
  if (failed()) return;
  absl::Status status;
  if (!begun_) {
    status = BeginFirstSegment();
  } else if (status = LookForSegment(now_ns); status.ok() && SegmentIsFull()) {
    status = BeginSegment();
  }
  // What is written is synced in time, even if there is no space for another segment.
  if ((status.ok() || absl::IsResourceExhausted(status)) && SyncDue(now_ns)) {
    last_sync_ns_ = now_ns;
    if (absl::Status synced = SyncSegment(); !synced.ok()) status = synced;
  }
  Note(kSyncing, status);
}

// What is written to a file without a name is gone with the process, however often it is synced.
absl::Status Journal::LookForSegment(int64_t now_ns) {
  if (now_ns < next_look_ns_) return absl::OkStatus();
  next_look_ns_ = now_ns + kLookNs;
  uint64_t first = 0;
  {
    MutexLock lock(write_mutex_);
    first = segment_first_;
  }
  if (!absl::IsNotFound(options_.files->Find(SegmentName(first)))) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      options_.files->path(), "/", SegmentName(first),
      " was removed or renamed while the server runs, so its items are in its memory only. Bring "
      "the directory back, or read the items out before the server ends (kvcli --json scan "
      "--values)"));
}

absl::Status Journal::BeginFirstSegment() {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<File> file, MakeSegment());
  GANNET_RETURN_IF_ERROR(NameSegment(file.get(), options_.position));
  MutexLock lock(write_mutex_);
  UseSegment(std::move(file), options_.position);
  begun_ = true;
  return absl::OkStatus();
}

void Journal::TakeBatch() {
  MutexLock lock(mutex_);
  std::swap(batch_, waiting_);
}

absl::Status Journal::WriteBatch() {
  if (batch_.empty()) TakeBatch();
  while (!batch_.empty()) {
    Chunk& chunk = *batch_.front();
    // Acquire: with Fill. Whoever fills it now lets the journal be written again afterwards.
    if (chunk.filled.load(std::memory_order_acquire) != chunk.reserved) break;
    MakeRecords(&chunk);
    GANNET_RETURN_IF_ERROR(WriteChunk(chunk));
    PopBatch();
  }
  return absl::OkStatus();
}

// A segment that is full grows until the next one is there, so nobody waits for that.
absl::Status Journal::WriteChunk(const Chunk& chunk) {
  const std::span<const std::byte> bytes(chunk.bytes.get(), chunk.reserved);
  const uint64_t end = written() + chunk.reserved;
  GANNET_RETURN_IF_ERROR(ZeroAhead(chunk.reserved));
  GANNET_RETURN_IF_ERROR(
      segment_->WriteAt(kSegmentHeaderBytes + written() - segment_first_, bytes));
  if (next_ != nullptr) {
    GANNET_RETURN_IF_ERROR(next_->WriteAt(kSegmentHeaderBytes + written() - next_first_, bytes));
  }
  if (end - segment_first_ > segment_space_) {
    disk_bytes_.fetch_add(end - segment_first_ - segment_space_, std::memory_order_relaxed);
    segment_space_ = end - segment_first_;
  }
  if (written_since_ns_ == 0) written_since_ns_ = chunk.since_ns;
  written_.store(end, std::memory_order_relaxed);
  return absl::OkStatus();
}

// A chunk for one large value does not keep its memory.
void Journal::PopBatch() {
  std::unique_ptr<Chunk> chunk = std::move(batch_.front());
  batch_.pop_front();
  MutexLock lock(mutex_);
  waiting_bytes_ -= chunk->reserved;
  unwritten_since_ns_.store(WaitingSince(), std::memory_order_relaxed);
  if (chunk->capacity <= kChunkBytes) spare_ = std::move(chunk);
}

int64_t Journal::WaitingSince() const {
  if (!batch_.empty()) return batch_.front()->since_ns;
  return waiting_.empty() ? 0 : waiting_.front()->since_ns;
}

// A file system notes in its own journal which part of a reserved file was written for the first
// time, so a sync after such a write waits for that journal too, and takes twice as long. To write
// zeros makes that so for many syncs at once. The zeros change nothing: what is not written yet is
// zero, and no record is there before it is written behind them.
absl::Status Journal::ZeroAhead(size_t bytes) {
  const uint64_t end = written() + bytes;
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

bool Journal::SegmentIsFull() {
  MutexLock lock(write_mutex_);
  return written() - segment_first_ >= segment_space_;
}

// To make a segment takes several syncs, and others write meanwhile. What they write goes into both
// segments: the old one counts until the next one has its name, and from then on that one does. The
// end of the old one, which is in both, is never read then.
absl::Status Journal::BeginSegment() {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<File> file, MakeSegment());
  File* full = nullptr;
  uint64_t first = 0;
  {
    MutexLock lock(write_mutex_);
    full = segment_.get();
    first = next_first_ = written();
    next_ = file.get();
    written_since_ns_ = 0;
  }
  absl::Status status = NotAgain(full->Sync());  // invariant 3
  if (status.ok()) status = NameSegment(file.get(), first);
  {
    MutexLock lock(write_mutex_);
    next_ = nullptr;
    if (status.ok()) UseSegment(std::move(file), first);
  }
  if (status.ok()) NoteSynced(first);
  return status;
}

absl::StatusOr<std::unique_ptr<File>> Journal::MakeSegment() {
  Files& files = *options_.files;
  // An earlier try may have left it.
  if (absl::Status removed = files.Remove(kNewSegmentName);
      !removed.ok() && !absl::IsNotFound(removed)) {
    return removed;
  }
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files.Create(kNewSegmentName));
  GANNET_RETURN_IF_ERROR(file->Reserve(kSegmentHeaderBytes + options_.segment_bytes));
  return file;
}

// The file gets its name when it is complete, so a segment never has half a header.
absl::Status Journal::NameSegment(File* file, uint64_t first) {
  Files& files = *options_.files;
  GANNET_RETURN_IF_ERROR(
      file->WriteAt(0, EncodeSegmentHeader(options_.journal_id, first,
                                           kSegmentHeaderBytes + options_.segment_bytes)));
  GANNET_RETURN_IF_ERROR(NotAgain(file->Sync()));
  GANNET_RETURN_IF_ERROR(files.Rename(kNewSegmentName, SegmentName(first)));
  return NotAgain(files.SyncDirectory());
}

void Journal::UseSegment(std::unique_ptr<File> file, uint64_t first) {
  segment_ = std::move(file);
  segment_first_ = first;
  segment_space_ = std::max<uint64_t>(options_.segment_bytes, written() - first);
  zeroed_ = written();
  disk_bytes_.fetch_add(kSegmentHeaderBytes + segment_space_, std::memory_order_relaxed);
}

absl::Status Journal::SyncSegment() {
  File* segment = nullptr;
  uint64_t until = 0;
  {
    MutexLock lock(write_mutex_);
    segment = segment_.get();  // only this thread replaces it
    until = written();
    written_since_ns_ = 0;
  }
  GANNET_RETURN_IF_ERROR(NotAgain(segment->Sync()));
  NoteSynced(until);
  return absl::OkStatus();
}

void Journal::NoteSynced(uint64_t until) {
  // Release: whoever acts because of this position does so after the sync.
  synced_.store(until, std::memory_order_release);
  MutexLock writing(write_mutex_);
  MutexLock lock(mutex_);
  const int64_t since_ns = written_since_ns_ != 0 ? written_since_ns_ : WaitingSince();
  unsynced_since_ns_.store(since_ns, std::memory_order_relaxed);
}

bool Journal::SyncDue(int64_t now_ns) const {
  if (written() == synced()) return false;
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

std::optional<int64_t> Journal::sync_due_ns() const {
  if (failed() || options_.sync != Sync::kInterval || written() == synced()) return std::nullopt;
  return last_sync_ns_ + options_.sync_interval_ns;
}

absl::Status Journal::SyncAll(int64_t now_ns) {
  const uint64_t end = appended();
  Flush(now_ns);
  while (status().ok() && written() < end) {
    std::this_thread::yield();  // somebody fills a chunk
    Flush(now_ns);
  }
  // Also if there is no space for another segment.
  if (!failed() && synced() < std::min(end, written())) Note(kSyncing, SyncSegment());
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

void Journal::Note(Step step, const absl::Status& status) {
  MutexLock lock(mutex_);
  if (failed()) return;  // the first failure is the reason
  status_[step] = status;
  if (status.ok() || absl::IsResourceExhausted(status)) return;
  status_.fill(status);
  // Release: whoever sees the flag finds the reason.
  failed_.store(true, std::memory_order_release);
}

absl::Status Journal::status() const {
  MutexLock lock(mutex_);
  return status_[kWriting].ok() ? status_[kSyncing] : status_[kWriting];
}

}  // namespace gannet
