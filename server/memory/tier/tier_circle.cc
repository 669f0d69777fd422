// A segment is written from its begin on, batch by batch, and ends with the list of its records.
// What a batch that failed would have brought is forgotten: nobody was told of it as written. The
// list has room from the first record on, so that sealing a segment never fails for want of it.

#include "server/memory/tier/tier_circle.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace gannet {
namespace {

constexpr uint64_t kBatchRoom =
    std::max(TierCircle::kBatchBytes, AlignUp(kTierRecordBytesMax, kTierBlockBytes));

}  // namespace

// A circle that begins anew takes the last segment for the newest one, and for full. So the first
// to be taken is the first. One that goes on writes nothing more to the newest segment, of which it
// does not know the end.
TierCircle::TierCircle(const Options& options)
    : options_(options),
      laps_(options.segments),
      newest_(options.segments - 1),
      used_(options.segment_bytes),
      batch_(kBatchRoom) {
  for (uint64_t i = 0; i < options.laps.size(); ++i) {
    const uint32_t lap = laps_[i].lap = options.laps[i];
    if (lap == 0 || lap < lap_) continue;
    lap_ = lap;
    newest_ = i;
  }
}

// Room stays for the list, with an entry for each record.
bool TierCircle::Fits(uint64_t batch_bytes) const {
  const uint64_t list_bytes = TierListBytes(written_.size() + added_.size() + 1);
  return used_ + AlignUp(batch_bytes, kTierBlockBytes) + list_bytes <= options_.segment_bytes;
}

std::optional<TierPlace> TierCircle::Add(const TierRecord& record) {
  GANNET_CHECK(!record.key.empty() && record.key.size() <= kKeyBytesMax &&
                   record.value.size() <= kTierValueBytesMax,
               "a record of lengths that a tier takes");
  const uint64_t bytes = TierRecordBytes(record.key.size(), record.value.size());
  GANNET_CHECK(AlignUp(bytes, kTierBlockBytes) + TierListBytes(1) <= options_.segment_bytes,
               "a segment has room for each record");
  if (batch_bytes_ > 0 && batch_bytes_ + bytes > kBatchBytes) return std::nullopt;
  if (!Fits(batch_bytes_ + bytes)) return std::nullopt;
  const TierPlace place{.position = BeginOf(newest_) + used_ + batch_bytes_,
                        .lap = lap_,
                        .value_bytes = static_cast<uint32_t>(record.value.size()),
                        .version = record.version};
  EncodeTierRecord(options_.tier, place, record, batch_.bytes().subspan(batch_bytes_, bytes));
  batch_bytes_ += bytes;
  added_.push_back({record.hash, record.version, place.position});
  return place;
}

absl::Status TierCircle::Write() {
  const uint64_t bytes = AlignUp(batch_bytes_, kTierBlockBytes);
  const std::span<std::byte> blocks = batch_.bytes().first(bytes);
  std::memset(blocks.data() + batch_bytes_, 0, bytes - batch_bytes_);
  batch_bytes_ = 0;
  const std::vector<TierListEntry> added = std::exchange(added_, {});
  if (bytes == 0) return absl::OkStatus();
  const absl::Status status = options_.file->WriteAt(BeginOf(newest_) + used_, blocks);
  if (!status.ok()) return status;
  used_ += bytes;
  written_.insert(written_.end(), added.begin(), added.end());
  return status;
}

absl::Status TierCircle::Seal() {
  GANNET_CHECK(batch_empty(), "a segment is sealed behind its last batch");
  if (!taken_) return absl::OkStatus();
  const TierBuffer buffer(TierListBytes(written_.size()));
  EncodeTierList(options_.tier, lap_, written_, buffer.bytes());
  const uint64_t end = BeginOf(newest_) + options_.segment_bytes;
  return options_.file->WriteAt(end - buffer.bytes().size(), buffer.bytes());
}

TierCircle::Segment TierCircle::ListOldest() {
  Segment segment;
  segment.begin = BeginOf(oldest());
  segment.end = segment.begin + options_.segment_bytes;
  {
    MutexLock lock(mutex_);
    segment.lap = laps_[oldest()].lap;
  }
  if (segment.lap == 0) {
    segment.list.emplace();
    return segment;
  }
  const auto read = [this](uint64_t offset, std::span<std::byte> bytes) {
    const absl::StatusOr<size_t> n = options_.file->ReadAt(offset, bytes);
    return n.ok() && *n == bytes.size();
  };
  const TierBuffer last(kTierBlockBytes);
  const std::span<std::byte, kTierBlockBytes> block(last.bytes());
  if (!read(segment.end - kTierBlockBytes, block)) return segment;
  const std::optional<uint32_t> entries =
      TierListEntries(block, options_.tier, segment.lap, options_.segment_bytes);
  if (!entries) return segment;
  const TierBuffer list(TierListBytes(*entries));
  if (read(segment.end - list.bytes().size(), list.bytes())) {
    segment.list = DecodeTierList(list.bytes(), *entries);
  }
  return segment;
}

absl::StatusOr<bool> TierCircle::TakeOldest() {
  GANNET_CHECK(batch_empty(), "a batch belongs to a segment");
  // Nobody can pin it when no pin is left, as no stub leads there.
  const uint64_t taken = oldest();
  {
    MutexLock lock(mutex_);
    if (laps_[taken].pins > 0) return false;
  }
  // Otherwise the old list would be taken for that of the new records, if those get none.
  const TierBuffer zeros(kTierBlockBytes);
  std::memset(zeros.bytes().data(), 0, zeros.bytes().size());
  const uint64_t end = BeginOf(taken) + options_.segment_bytes;
  const absl::Status status = options_.file->WriteAt(end - kTierBlockBytes, zeros.bytes());
  if (!status.ok()) return status;
  MutexLock lock(mutex_);
  if (laps_[taken].pins > 0) return false;
  newest_ = taken;
  if (newest_ == 0) ++lap_;
  laps_[newest_].lap = lap_;
  used_ = 0;
  written_.clear();
  taken_ = true;
  return true;
}

bool TierCircle::Pin(const TierPlace& place) {
  const uint64_t segment = SegmentOf(place.position);
  GANNET_CHECK(place.position >= kTierBlockBytes && segment < options_.segments,
               "a place in the tier");
  MutexLock lock(mutex_);
  if (laps_[segment].lap != place.lap) return false;
  ++laps_[segment].pins;
  return true;
}

void TierCircle::Unpin(const TierPlace& place) {
  MutexLock lock(mutex_);
  Lap& lap = laps_[SegmentOf(place.position)];
  GANNET_CHECK(lap.pins > 0, "it was pinned");
  --lap.pins;
}

absl::StatusOr<std::string_view> TierCircle::Read(const TierPlace& place, std::string_view key,
                                                  std::span<std::byte> buffer) const {
  const uint64_t bytes = TierRecordBytes(key.size(), place.value_bytes);
  const TierBlocks blocks = BlocksOf(place.position, bytes);
  GANNET_CHECK(buffer.size() >= blocks.bytes, "a buffer for the record's blocks");
  const absl::StatusOr<size_t> n = options_.file->ReadAt(blocks.begin, buffer.first(blocks.bytes));
  if (!n.ok()) return n.status();
  if (*n == blocks.bytes) {
    const std::span<const std::byte> record = buffer.subspan(place.position - blocks.begin, bytes);
    const std::optional<std::string_view> value =
        ProveTierRecord(record, options_.tier, place, key);
    if (value) return *value;
  }
  return absl::DataLossError(
      absl::StrCat("the tier does not have the record at ", place.position, " any more"));
}

}  // namespace gannet
