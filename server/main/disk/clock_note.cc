#include "server/main/disk/clock_note.h"

#include <algorithm>
#include <span>

#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "server/main/disk/data_directory.h"

namespace gannet {
namespace {

constexpr uint64_t kEntries = 2;

uint64_t Checksum(const ClockEntry& entry) {
  return Xxh3(&entry, offsetof(ClockEntry, checksum), /*seed=*/0);
}

// Returns ServerTime() if there is no entry.
ServerTime ReadClockEntry(File* file, uint64_t i, uint64_t journal_id) {
  ClockEntry entry{};
  const auto bytes =
      file->ReadAt(i * kClockEntryStride, std::as_writable_bytes(std::span(&entry, 1)));
  if (!bytes.ok() || *bytes != sizeof(entry) || entry.magic != kClockMagic ||
      entry.journal_id != journal_id || entry.checksum != Checksum(entry)) {
    return {};
  }
  return ServerTime::FromMs(entry.clock_ms);
}

}  // namespace

void ClockNote::Poll(ServerTime clock, int64_t now_ns) {
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + kEveryNs;
  Write(clock);
}

void ClockNote::Write(ServerTime clock) {
  const absl::Status status = TryWrite(clock);
  if (!status.ok() && !told_) LOG(WARNING) << "cannot note the time: " << status.message();
  told_ = !status.ok();
}

absl::Status ClockNote::TryWrite(ServerTime clock) {
  if (file_ == nullptr) {
    // Begins with the older one of an earlier run's entries.
    auto opened = files_->Open(kClockFileName);
    if (opened.ok()) {
      noted_ = ReadClockEntry(opened->get(), 0, journal_id_) >
               ReadClockEntry(opened->get(), 1, journal_id_);
    } else if (absl::IsNotFound(opened.status())) {
      opened = files_->Create(kClockFileName);
    }
    GANNET_RETURN_IF_ERROR(opened.status());
    file_ = *std::move(opened);
    if (syncs_) GANNET_RETURN_IF_ERROR(files_->SyncDirectory());
  }
  ClockEntry entry{
      .magic = kClockMagic, .journal_id = journal_id_, .clock_ms = clock.ms(), .checksum = 0};
  entry.checksum = Checksum(entry);
  GANNET_RETURN_IF_ERROR(
      file_->WriteAt(noted_ % kEntries * kClockEntryStride, std::as_bytes(std::span(&entry, 1))));
  ++noted_;
  return syncs_ ? file_->Sync() : absl::OkStatus();
}

ServerTime NotedClock(Files* files) {
  const auto journal_id = ReadNumberOfDirectory(files);
  const auto file = files->Open(kClockFileName);
  if (!journal_id.ok() || !file.ok()) return {};
  return std::max(ReadClockEntry(file->get(), 0, *journal_id),
                  ReadClockEntry(file->get(), 1, *journal_id));
}

}  // namespace gannet
