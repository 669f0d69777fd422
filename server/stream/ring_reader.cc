#include "server/stream/ring_reader.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/words.h"
#include "server/stream/update_record.h"

namespace gannet {

RingReader::RingReader(std::span<std::byte> ring, const Begin& begin)
    : ring_(ring),
      stream_id_(begin.stream_id),
      taken_{.lsn = begin.lsn, .position = begin.position},
      found_(taken_) {
  update_.kind = RingRecordKind::kUpdate;
  GANNET_CHECK(ring.size() >= 2 * kRingRecordBytesMax && ring.size() % kRecordAlignment == 0,
               "a ring has room for the two longest records");
  GANNET_CHECK(begin.position % kRecordAlignment == 0, "a record begins at a word");
}

std::optional<RingReader::Copy> RingReader::CopyAt(const Place& place) {
  const size_t offset = place.position % ring_.size();
  // What is farther has not been freed since it was written.
  const size_t room =
      std::min<size_t>(ring_.size() - offset, ring_.size() - (place.position - taken_.position));
  if (room < sizeof(RingRecordStart)) return std::nullopt;
  const std::byte* const at = ring_.data() + offset;
  RingRecordStart start;
  static_assert(offsetof(RingRecordStart, record_bytes) == sizeof(uint64_t));
  if (LoadWord(at + sizeof(uint64_t)) == 0) return std::nullopt;  // no record has the length 0
  LoadWords(&start, at, sizeof(start));
  const std::optional<size_t> bytes = LengthOfRingRecord(start);
  if (!bytes || *bytes > room) return std::nullopt;
  std::byte* const copy = proven_.Room(*bytes);
  LoadWords(copy, at, *bytes);
  if (start.kind == static_cast<uint8_t>(RingRecordKind::kUpdate)) [[likely]] {
    const auto proof = ProveUpdate(std::span(copy, *bytes), {stream_id_, place.lsn});
    if (!proof) return std::nullopt;
    return Copy{.kind = RingRecordKind::kUpdate,
                .committed = proof->committed,
                .item_checksum = proof->item_checksum,
                .bytes = {copy, *bytes}};
  }
  const auto view = DecodeRingRecord(std::span(copy, *bytes), {stream_id_, place.lsn});
  if (!view) return std::nullopt;
  return Copy{.kind = view->record.kind,
              .committed = view->committed,
              .item_checksum = 0,
              .bytes = {copy, *bytes}};
}

std::optional<RingReader::Copy> RingReader::RecordAt(Place* place) {
  const size_t left = ring_.size() - place->position % ring_.size();
  std::optional<Copy> copy;
  if (left >= sizeof(RingRecordStart)) {
    copy = CopyAt(*place);
    if (!copy || copy->kind != RingRecordKind::kWrap) return copy;
  }
  const Place start = {.lsn = place->lsn, .position = place->position + left};
  copy = CopyAt(start);
  if (!copy || copy->kind == RingRecordKind::kWrap) return std::nullopt;
  *place = start;
  return copy;
}

bool RingReader::Scan() {
  if (sealed_) return false;
  const uint64_t before = found_.lsn;
  while (const auto copy = RecordAt(&found_)) {
    const size_t bytes = copy->bytes.size();
    proven_.Add(found_.position, bytes, copy->item_checksum);
    found_.lsn += bytes;
    found_.position += bytes;
    committed_ = std::max(committed_, copy->committed);
  }
  return found_.lsn != before;
}

void RingReader::Zero(uint64_t from, size_t bytes) {
  std::byte* const at = ring_.data() + from % ring_.size();
  size_t i = 0;
  for (; i + 64 <= bytes; i += 64) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 64; j += sizeof(uint64_t)) StoreWord(at + i + j, 0);
  }
  for (; i < bytes; i += sizeof(uint64_t)) StoreWord(at + i, 0);
}

void RingReader::Take(uint64_t limit, const Use& use) {
  while (!proven_.empty()) {
    const ProvenRecords::Record proven = proven_.First();
    const size_t bytes = proven.bytes.size();
    if (taken_.lsn + bytes > limit) return;
    if (proven.item_checksum != 0) {
      DecodeProvenUpdate(proven.bytes, proven.item_checksum, &update_.change);
      use(update_, taken_.lsn, taken_.lsn + bytes);
    } else {
      use(DecodeProvenRingRecord(proven.bytes), taken_.lsn, taken_.lsn + bytes);
    }
    // A wrap is freed with the record behind it, as that shows that the wrap was shipped.
    const uint64_t left = ring_.size() - taken_.position % ring_.size();
    if (proven.position != taken_.position && left >= sizeof(RingRecordStart)) {
      Zero(taken_.position, sizeof(RingRecordStart));
    }
    Zero(proven.position, bytes);
    taken_ = {.lsn = taken_.lsn + bytes, .position = proven.position + bytes};
    proven_.Pop();
  }
}

RingTail RingReader::Seal() {
  RingTail tail(taken_.lsn);
  if (sealed_) return tail;
  // Only this copy counts: what was found before is proven again.
  proven_.Clear();
  Place place = taken_;
  while (const auto copy = RecordAt(&place)) {
    tail.Add(copy->bytes, {.stream_id = stream_id_, .lsn = place.lsn});
    committed_ = std::max(committed_, copy->committed);
    place.lsn += copy->bytes.size();
    place.position += copy->bytes.size();
  }
  found_ = place;
  sealed_ = true;
  return tail;
}

}  // namespace gannet
