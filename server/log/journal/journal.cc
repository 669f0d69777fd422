// A record goes from WaitingRecords through SegmentWriter into a file, and is then synced. Any
// failure of a write or a sync but a lack of space is final: Note keeps the first one, and nothing
// is tried again.

#include "server/log/journal/journal.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "common/base/status_macros.h"
#include "server/log/changes/record.h"

namespace gannet {
namespace {

// How often somebody looks whether the segment is still there.
constexpr int64_t kLookNs = kNsPerSecond;
// People hear of changes that wait to be written for so long.
constexpr int64_t kLongUnwrittenNs = kNsPerSecond;

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
      records_(options.journal_id, options.position,
               {.bytes_max = options.waiting_bytes_max,
                .unsynced_ns_max = options.sync == Sync::kNone ? 0 : options.unsynced_ns_max,
                .unwritten_ns_max = options.sync == Sync::kAlways ? 0 : options.unwritten_ns_max,
                .refuses_for_age = options.refuses_for_age}),
      files_(*options.files, options.journal_id, options.segment_bytes, options.disk_bytes),
      segment_(files_, options.sync == Sync::kAlways),
      written_(options.position),
      synced_(options.position) {}

absl::Status Journal::Taking(int64_t now_ns) const {
  if (absl::Status why_not = status(); !why_not.ok()) return why_not;
  if (records_.TakesIfWrittenWithin(kLongUnwrittenNs, now_ns)) return absl::OkStatus();
  return absl::ResourceExhaustedError("the disk is slower than changes come");
}

std::optional<uint64_t> Journal::Append(const Change& change, int64_t now_ns) {
  const auto place = Reserve(RecordBytes(change.key.size(), change.value.size()), now_ns);
  if (!place) return std::nullopt;
  Fill(change, *place);
  return place->end;
}

bool Journal::Write() {
  if (failed()) return false;
  MutexLock writing(write_mutex_);
  const absl::Status status = WriteWaiting();
  Note(kWriting, status);
  return status.ok() && records_.IsWorthAWrite();
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

absl::Status Journal::LookForSegment(int64_t now_ns) {
  if (now_ns < next_look_ns_) return absl::OkStatus();
  next_look_ns_ = now_ns + kLookNs;
  uint64_t first = 0;
  {
    MutexLock lock(write_mutex_);
    first = segment_.first();
  }
  return files_.Find(first);
}

absl::Status Journal::BeginFirstSegment() {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Make());
  GANNET_RETURN_IF_ERROR(files_.Name(file.get(), options_.position));
  MutexLock lock(write_mutex_);
  segment_.Use(std::move(file), options_.position, written());
  begun_ = true;
  return absl::OkStatus();
}

absl::Status Journal::WriteWaiting() {
  records_.Gather();
  while (const auto filled = records_.First(synced())) {
    GANNET_RETURN_IF_ERROR(segment_.Write(written(), filled->bytes));
    if (written_since_ns_ == 0) written_since_ns_ = filled->since_ns;
    written_.store(written() + filled->bytes.size(), std::memory_order_relaxed);
    records_.Pop();
  }
  return absl::OkStatus();
}

bool Journal::SegmentIsFull() {
  MutexLock lock(write_mutex_);
  return segment_.IsFull(written());
}

// To make a segment takes several syncs, and others write meanwhile. What they write goes into both
// segments: the old one counts until the next one has its name, and from then on that one does. The
// end of the old one, which is in both, is never read then.
absl::Status Journal::BeginSegment() {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.Make());
  File* full = nullptr;
  uint64_t first = 0;
  {
    MutexLock lock(write_mutex_);
    full = segment_.file();
    first = written();
    segment_.BeginNext(file.get(), first);
    written_since_ns_ = 0;
  }
  absl::Status status = NotAgain(full->Sync());  // invariant 3
  if (status.ok()) status = files_.Name(file.get(), first);
  {
    MutexLock lock(write_mutex_);
    segment_.EndNext();
    if (status.ok()) segment_.Use(std::move(file), first, written());
  }
  if (status.ok()) NoteSynced(first);
  return status;
}

absl::Status Journal::SyncSegment() {
  File* segment = nullptr;
  uint64_t until = 0;
  {
    MutexLock lock(write_mutex_);
    segment = segment_.file();  // only this thread replaces it
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
  records_.NoteSynced(written_since_ns_);
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

void Journal::Note(Step step, const absl::Status& status) {
  MutexLock lock(status_mutex_);
  if (failed()) return;  // the first failure is the reason
  status_[step] = status;
  records_.SetRefusesAll(!status_[kWriting].ok() || !status_[kSyncing].ok());
  if (status.ok() || absl::IsResourceExhausted(status)) return;
  status_.fill(status);
  // Release: whoever sees the flag finds the reason.
  failed_.store(true, std::memory_order_release);
}

absl::Status Journal::status() const {
  MutexLock lock(status_mutex_);
  return status_[kWriting].ok() ? status_[kSyncing] : status_[kWriting];
}

}  // namespace gannet
