// Reads a journal from its segments, and decides where it ends. In the last segment the first bad
// record is the end, unless a record behind it says that it was on disk: each record tells how much
// was synced when it was made. Everything else that is bad is DataLoss. With `cut` the last segment
// is then written again from there, synced, and made shorter.

#include "server/log/journal/read_journal.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/log/journal/piece_reader.h"
#include "server/log/journal/segment.h"

namespace gannet {
namespace {

constexpr uint64_t kWriteAgainBytes = 1 << 20;

struct Segment {
  uint64_t first = 0;
  std::optional<uint64_t> next;  // first of the next one; none: the last segment
};

class JournalReader {
 public:
  JournalReader(const ReadJournalOptions& options,
                absl::FunctionRef<absl::Status(const Change&)> apply)
      : options_(options), apply_(apply) {}

  absl::StatusOr<JournalEnd> Read() {
    GANNET_ASSIGN_OR_RETURN(std::vector<Segment> segments, FindSegments());
    end_.position = options_.from;
    for (const Segment& segment : segments) {
      if (segment.next && *segment.next <= options_.from) continue;
      GANNET_RETURN_IF_ERROR(ReadSegment(segment));
    }
    if (end_.position < options_.from) {
      return absl::DataLossError(absl::StrCat("the journal in ", options_.files->path(),
                                              " ends at ", end_.position, ", before ",
                                              options_.from, ", where the snapshot was begun"));
    }
    return end_;
  }

 private:
  std::string PathOf(const Segment& segment) const {
    return absl::StrCat(options_.files->path(), "/", SegmentName(segment.first));
  }

  absl::StatusOr<std::vector<Segment>> FindSegments() {
    GANNET_ASSIGN_OR_RETURN(const std::vector<std::string> names, options_.files->List());
    std::vector<Segment> segments;
    for (const std::string& name : names) {
      const std::optional<uint64_t> first = FirstOfSegment(name);
      if (!first) continue;
      if (!segments.empty()) segments.back().next = *first;
      segments.push_back({.first = *first});
    }
    const uint64_t begins = segments.empty() ? 0 : segments.front().first;
    if (begins > options_.from || (segments.empty() && options_.from > 0)) {
      return absl::DataLossError(absl::StrCat(
          "the journal in ", options_.files->path(), " is needed from position ", options_.from,
          " on, but ", segments.empty() ? "has no segment" : absl::StrCat("begins at ", begins)));
    }
    return segments;
  }

  absl::Status CheckHeader(const Segment& segment, File* file, uint64_t size) {
    std::array<std::byte, kSegmentHeaderBytes> header{};
    GANNET_RETURN_IF_ERROR(file->ReadAt(0, header).status());
    GANNET_RETURN_IF_ERROR(CheckProof(segment, header));
    const uint64_t made = FileBytesOf(header).value_or(0);
    if (segment.next || size >= made) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        PathOf(segment), " has ", size, " bytes, and had ", made,
        " before anything was written to it. So its end was cut off, and acknowledged changes may "
        "be gone. Restore the file, or a snapshot; or start with what is left: truncate -s ",
        made, " ", PathOf(segment)));
  }

  absl::Status CheckProof(const Segment& segment,
                          std::span<const std::byte, kSegmentHeaderBytes> header) const {
    switch (ProveSegment(header, options_.journal_id, segment.first)) {
      case SegmentProof::kOk:
        return absl::OkStatus();
      case SegmentProof::kDamaged:
      case SegmentProof::kOtherPosition:
        return absl::DataLossError(absl::StrCat(PathOf(segment), " has a damaged header"));
      case SegmentProof::kOtherVersion:
        return absl::FailedPreconditionError(
            absl::StrCat(PathOf(segment), " was written by another version of kvserver"));
      case SegmentProof::kOtherJournal:
        return absl::FailedPreconditionError(
            absl::StrCat(PathOf(segment), " belongs to another server's directory"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadSegment(const Segment& segment) {
    GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                            options_.files->Open(SegmentName(segment.first)));
    GANNET_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    GANNET_RETURN_IF_ERROR(CheckHeader(segment, file.get(), size));
    PieceReader reader(file.get(), size);
    uint64_t position = segment.first;
    while (!segment.next || position < *segment.next) {
      GANNET_ASSIGN_OR_RETURN(const std::optional<RecordView> record,
                              ReadRecord(&reader, segment, position));
      if (!record) break;
      whole_until_ = std::max(whole_until_, record->synced);
      if (position >= options_.from) {
        GANNET_RETURN_IF_ERROR(apply_(record->change));
        ++end_.changes;
      }
      position += RecordBytes(record->change.key.size(), record->change.value.size());
    }
    end_.position = position;
    if (segment.next) {
      return position == *segment.next ? absl::OkStatus() : Damaged(segment, position);
    }
    return EndAt(segment, file.get(), position);
  }

  // Returns nullopt if there is no whole record at the position.
  absl::StatusOr<std::optional<RecordView>> ReadRecord(PieceReader* reader, const Segment& segment,
                                                       uint64_t position) {
    const uint64_t offset = kSegmentHeaderBytes + position - segment.first;
    GANNET_ASSIGN_OR_RETURN(auto bytes, reader->At(offset, sizeof(RecordHeader)));
    if (bytes.size() < sizeof(RecordHeader)) return std::nullopt;
    const std::optional<size_t> length = LengthOfRecord(bytes);
    if (!length) return std::nullopt;
    GANNET_ASSIGN_OR_RETURN(bytes, reader->At(offset, *length));
    if (bytes.size() < *length) return std::nullopt;
    return DecodeRecord(bytes, options_.journal_id, position);
  }

  absl::Status Damaged(const Segment& segment, uint64_t position) const {
    return absl::DataLossError(absl::StrCat(
        PathOf(segment), " is damaged at offset ", kSegmentHeaderBytes + position - segment.first,
        ", and what follows it was on disk. Restore a snapshot, or move the file and all later "
        "ones away to start with what is before it"));
  }

  // The journal ends at `position` of its last segment, if nothing behind it was confirmed.
  absl::Status EndAt(const Segment& segment, File* file, uint64_t position) {
    GANNET_RETURN_IF_ERROR(LookBehind(segment, file, position));
    if (position < whole_until_) return Damaged(segment, position);
    if (!options_.cut) return absl::OkStatus();
    GANNET_RETURN_IF_ERROR(WriteAgain(segment, file, position));
    // Gives back the space that no record needed. The header says so before the file is shorter. A
    // segment may also have grown. So the file's length is on disk before the header tells of it.
    const uint64_t bytes = kSegmentHeaderBytes + position - segment.first;
    GANNET_RETURN_IF_ERROR(
        file->WriteAt(0, EncodeSegmentHeader(options_.journal_id, segment.first, bytes)));
    GANNET_RETURN_IF_ERROR(file->Sync());
    GANNET_RETURN_IF_ERROR(file->Truncate(bytes));
    return file->Sync();
  }

  // After kill -9 the last records may be in the system's memory only, and another segment may
  // follow this one soon. So this syncs them. It writes them again first: if a sync failed before,
  // the system takes them for synced (fsync(2)).
  absl::Status WriteAgain(const Segment& segment, File* file, uint64_t end) {
    PieceReader reader(file, kSegmentHeaderBytes + end - segment.first);
    for (uint64_t at = std::max(whole_until_, segment.first); at < end;) {
      const uint64_t offset = kSegmentHeaderBytes + at - segment.first;
      GANNET_ASSIGN_OR_RETURN(const auto bytes,
                              reader.At(offset, std::min(end - at, kWriteAgainBytes)));
      if (bytes.empty()) break;
      GANNET_RETURN_IF_ERROR(file->WriteAt(offset, bytes));
      at += bytes.size();
    }
    return file->Sync();
  }

  // Looks for bytes that are not zero, and for whole records, behind the end. Each of those knows
  // how much was on disk when it was made.
  absl::Status LookBehind(const Segment& segment, File* file, uint64_t end) {
    GANNET_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
    PieceReader reader(file, size);
    const uint64_t last =
        segment.first + (size < kSegmentHeaderBytes ? 0 : size - kSegmentHeaderBytes);
    for (uint64_t at = end; at < last; at += kRecordAlignment) {
      const uint64_t offset = kSegmentHeaderBytes + at - segment.first;
      GANNET_ASSIGN_OR_RETURN(const auto word, reader.At(offset, kRecordAlignment));
      const auto zero = [](std::byte byte) { return byte == std::byte{0}; };
      if (std::all_of(word.begin(), word.end(), zero)) continue;
      end_.torn_bytes = at + word.size() - end;
      GANNET_ASSIGN_OR_RETURN(const std::optional<RecordView> record,
                              ReadRecord(&reader, segment, at));
      if (record) whole_until_ = std::max(whole_until_, record->synced);
    }
    return absl::OkStatus();
  }

  const ReadJournalOptions& options_;
  absl::FunctionRef<absl::Status(const Change&)> apply_;
  JournalEnd end_;
  uint64_t whole_until_ = 0;  // everything below was on disk
};

}  // namespace

absl::StatusOr<JournalEnd> ReadJournal(const ReadJournalOptions& options,
                                       absl::FunctionRef<absl::Status(const Change&)> apply) {
  return JournalReader(options, apply).Read();
}

}  // namespace gannet
