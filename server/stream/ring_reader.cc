#include "server/stream/ring_reader.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/words.h"

namespace gannet {

RingReader::RingReader(std::span<std::byte> ring, const Begin& begin)
    : ring_(ring),
      stream_id_(begin.stream_id),
      taken_{.lsn = begin.lsn, .position = begin.position},
      found_(taken_) {
  GANNET_CHECK(ring.size() >= 2 * kRingRecordBytesMax && ring.size() % kRecordAlignment == 0,
               "a ring has room for the two longest records");
  GANNET_CHECK(begin.position % kRecordAlignment == 0, "a record begins at a word");
  copy_.resize(kRingRecordBytesMax);
}

std::optional<RingRecordView> RingReader::CopyAt(const Place& place) {
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
  LoadWords(copy_.data(), at, *bytes);
  return DecodeRingRecord(std::span(copy_).first(*bytes),
                          {.stream_id = stream_id_, .lsn = place.lsn});
}

std::optional<RingRecordView> RingReader::RecordAt(Place* place) {
  const size_t left = ring_.size() - place->position % ring_.size();
  std::optional<RingRecordView> view;
  if (left >= sizeof(RingRecordStart)) {
    view = CopyAt(*place);
    if (!view || view->record.kind != RingRecordKind::kWrap) return view;
  }
  const Place start = {.lsn = place->lsn, .position = place->position + left};
  view = CopyAt(start);
  if (!view || view->record.kind == RingRecordKind::kWrap) return std::nullopt;
  *place = start;
  return view;
}

bool RingReader::Scan() {
  if (sealed_) return false;
  bool any = false;
  while (const auto view = RecordAt(&found_)) {
    const size_t bytes = view->record.bytes();
    found_.lsn += bytes;
    found_.position += bytes;
    committed_ = std::max(committed_, view->committed);
    any = true;
  }
  return any;
}

void RingReader::Zero(uint64_t from, size_t bytes) {
  std::byte* const at = ring_.data() + from % ring_.size();
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) StoreWord(at + i, 0);
}

bool RingReader::Take(uint64_t limit, const Use& use) {
  while (taken_.lsn < found_.lsn && !sealed_) {
    Place place = taken_;
    const auto view = RecordAt(&place);
    if (!view) return false;
    const size_t bytes = view->record.bytes();
    if (place.lsn + bytes > limit) return true;
    use(view->record, place.lsn, place.lsn + bytes);
    // A wrap is freed with the record behind it, as that shows that the wrap was shipped.
    const uint64_t left = ring_.size() - taken_.position % ring_.size();
    if (place.position != taken_.position && left >= sizeof(RingRecordStart)) {
      Zero(taken_.position, sizeof(RingRecordStart));
    }
    Zero(place.position, bytes);
    taken_ = {.lsn = place.lsn + bytes, .position = place.position + bytes};
  }
  return true;
}

RingTail RingReader::Seal() {
  RingTail tail(taken_.lsn);
  if (sealed_) return tail;
  // Only this copy counts: what was found before is proven again.
  Place place = taken_;
  while (const auto view = RecordAt(&place)) {
    const size_t bytes = view->record.bytes();
    tail.Add(std::span(copy_).first(bytes), {.stream_id = stream_id_, .lsn = place.lsn});
    committed_ = std::max(committed_, view->committed);
    place.lsn += bytes;
    place.position += bytes;
  }
  found_ = place;
  sealed_ = true;
  return tail;
}

}  // namespace gannet
