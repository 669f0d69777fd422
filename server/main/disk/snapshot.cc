// Writes and reads a snapshot's file. It gets its name only once all of it, and all of the journal
// up to its end, is on disk, so a file with a name is whole.

#include "server/main/disk/snapshot.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "server/log/journal/piece_reader.h"

namespace gannet {
namespace {

constexpr std::string_view kPrefix = "snapshot-";
constexpr size_t kDigits = 16;
constexpr uint64_t kSyncBytes = 8 << 20;
constexpr uint64_t kSlotsPer3Items = 4;

uint64_t Checksum(const SnapshotHeader& header) {
  return Xxh3(&header, offsetof(SnapshotHeader, checksum), /*seed=*/0);
}
uint64_t Checksum(const SnapshotEnd& end, const SnapshotHeader& header) {
  return Xxh3(&end, offsetof(SnapshotEnd, checksum), header.checksum);
}

absl::Status Damaged(const std::string& path, uint64_t offset) {
  return absl::DataLossError(absl::StrCat(
      path, " is damaged at offset ", offset,
      ": bring it back from a copy, or start with an empty directory and --restore_from a copy of "
      "an earlier snapshot"));
}

absl::StatusOr<SnapshotHeader> ReadHeader(File* file, const std::string& path,
                                          std::optional<uint64_t> journal_id) {
  std::array<std::byte, kSnapshotHeaderBytes> bytes{};
  GANNET_RETURN_IF_ERROR(file->ReadAt(0, bytes).status());
  SnapshotHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kSnapshotMagic || header.checksum != Checksum(header)) {
    return Damaged(path, 0);
  }
  if (header.version != kSnapshotVersion || header.header_bytes != kSnapshotHeaderBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " was written by another version of kvserver"));
  }
  if (journal_id && header.journal_id != *journal_id) {
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     " belongs to another server's directory: move it away, or load it into "
                     "an empty directory by --restore_from"));
  }
  return header;
}

}  // namespace

std::string SnapshotName(uint64_t position) {
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(position));
  return std::string(kPrefix) + digits;
}

std::optional<uint64_t> PositionOfSnapshot(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kDigits) return std::nullopt;
  uint64_t position = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, position, /*base=*/16);
  if (parsed.ec != std::errc() || parsed.ptr != end || SnapshotName(position) != name) {
    return std::nullopt;
  }
  return position;
}

absl::StatusOr<std::unique_ptr<SnapshotWriter>> SnapshotWriter::Create(Files* files,
                                                                       uint64_t journal_id,
                                                                       uint64_t position) {
  SnapshotHeader header{.magic = kSnapshotMagic,
                        .version = kSnapshotVersion,
                        .header_bytes = kSnapshotHeaderBytes,
                        .journal_id = journal_id,
                        .position = position,
                        .checksum = 0};
  header.checksum = Checksum(header);
  if (absl::Status removed = files->Remove(kNewSnapshotName);
      !removed.ok() && !absl::IsNotFound(removed)) {
    return removed;
  }
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files->Create(kNewSnapshotName));
  std::unique_ptr<SnapshotWriter> writer(new SnapshotWriter(files, std::move(file), header));
  writer->waiting_.resize(kSnapshotHeaderBytes);
  std::memcpy(writer->waiting_.data(), &header, sizeof(header));
  return writer;
}

void SnapshotWriter::Add(const Change& item) {
  const size_t at = waiting_.size();
  const size_t bytes = RecordBytes(item.key.size(), item.value.size());
  waiting_.resize(at + bytes);
  EncodeRecord(item, header_.checksum, written_ + at, /*synced=*/0,
               std::span(waiting_).subspan(at));
  ++items_;
}

absl::Status SnapshotWriter::Write() {
  GANNET_RETURN_IF_ERROR(file_->WriteAt(written_, waiting_));
  written_ += waiting_.size();
  waiting_.clear();
  // One large value does not keep its memory for ever.
  if (waiting_.capacity() > kSyncBytes) waiting_.shrink_to_fit();
  if (written_ - synced_ < kSyncBytes) return absl::OkStatus();
  synced_ = written_;
  return file_->Sync();
}

absl::Status SnapshotWriter::Complete() {
  GANNET_RETURN_IF_ERROR(Write());
  SnapshotEnd end{.magic = kSnapshotEndMagic, .items = items_, .offset = written_, .checksum = 0};
  end.checksum = Checksum(end, header_);
  GANNET_RETURN_IF_ERROR(file_->WriteAt(written_, std::as_bytes(std::span(&end, 1))));
  written_ += sizeof(end);
  complete_ = true;
  return file_->Sync();
}

absl::Status SnapshotWriter::Name() {
  GANNET_CHECK(complete_, "the snapshot has no end");
  GANNET_RETURN_IF_ERROR(files_->Rename(kNewSnapshotName, SnapshotName(header_.position)));
  return files_->SyncDirectory();
}

absl::StatusOr<uint64_t> SlotsForSnapshot(Files* files) {
  GANNET_ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List());
  // The names are sorted, and so are the positions in them.
  const auto newest = std::find_if(names.rbegin(), names.rend(), [](const std::string& name) {
    return PositionOfSnapshot(name).has_value();
  });
  if (newest == names.rend()) return 0;
  GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->Open(*newest));
  GANNET_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  SnapshotEnd end{};
  if (size < sizeof(end)) return 0;
  GANNET_RETURN_IF_ERROR(
      file->ReadAt(size - sizeof(end), std::as_writable_bytes(std::span(&end, 1))).status());
  // A damaged one is refused when it is read as a whole.
  if (end.magic != kSnapshotEndMagic || end.items > size) return 0;
  return end.items * kSlotsPer3Items / 3;
}

absl::StatusOr<SnapshotRead> ReadSnapshot(Files* files, const std::string& name,
                                          std::optional<uint64_t> journal_id,
                                          absl::FunctionRef<absl::Status(const Change&)> apply) {
  const std::string path = absl::StrCat(files->path(), "/", name);
  GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->Open(name));
  GANNET_ASSIGN_OR_RETURN(const SnapshotHeader header, ReadHeader(file.get(), path, journal_id));
  GANNET_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size < kSnapshotHeaderBytes + sizeof(SnapshotEnd)) return Damaged(path, size);
  PieceReader reader(file.get(), size);
  const uint64_t end_at = size - sizeof(SnapshotEnd);
  SnapshotRead read{.journal_id = header.journal_id, .position = header.position, .bytes = size};
  uint64_t at = kSnapshotHeaderBytes;
  while (at < end_at) {
    GANNET_ASSIGN_OR_RETURN(auto bytes, reader.At(at, sizeof(RecordHeader)));
    if (bytes.size() < sizeof(RecordHeader)) return Damaged(path, at);
    const std::optional<size_t> length = LengthOfRecord(bytes);
    if (!length || *length > end_at - at) return Damaged(path, at);
    GANNET_ASSIGN_OR_RETURN(bytes, reader.At(at, *length));
    if (bytes.size() < *length) return Damaged(path, at);
    const std::optional<RecordView> record = DecodeRecord(bytes, header.checksum, at);
    if (!record) return Damaged(path, at);
    GANNET_RETURN_IF_ERROR(apply(record->change));
    ++read.items;
    at += *length;
  }
  SnapshotEnd end{};
  GANNET_ASSIGN_OR_RETURN(const auto bytes, reader.At(at, sizeof(end)));
  if (bytes.size() < sizeof(end)) return Damaged(path, at);
  std::memcpy(&end, bytes.data(), sizeof(end));
  if (end.magic != kSnapshotEndMagic || end.items != read.items || end.offset != at ||
      end.checksum != Checksum(end, header)) {
    return Damaged(path, at);
  }
  return read;
}

}  // namespace gannet
