// Scan finds what has arrived, and copies and proves each record once; Take gives these copies.
// Many short updates behind each other are found in one loop (ScanUpdates). Hot: it is compiled
// apart.

#include "server/log/stream/ring_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "common/base/check.h"
#include "common/base/words.h"
#include "server/log/stream/update_batch.h"
#include "server/log/stream/update_record_inline.h"

namespace gannet {
namespace {

// LoadWords of a whole record. A loop of single words would take more than twice the instructions.
[[gnu::always_inline]] inline void LoadRecord(std::byte* to, const std::byte* from, size_t bytes) {
  const auto copy_word = [&](size_t at) {
    const uint64_t word = LoadWord(from + at);
    std::memcpy(to + at, &word, sizeof(word));
  };
  for (; bytes >= 64; bytes -= 64, from += 64, to += 64) {
#pragma GCC unroll 8
    for (size_t at = 0; at < 64; at += sizeof(uint64_t)) copy_word(at);
  }
  for (; bytes != 0; bytes -= 8, from += 8, to += 8) copy_word(0);
}

RingRecordKind KindOf(const std::byte* record) {
  return static_cast<RingRecordKind>(record[offsetof(RingRecordStart, kind)]);
}
bool IsUpdate(const std::byte* record) { return KindOf(record) == RingRecordKind::kUpdate; }

template <size_t kBytes>
[[gnu::always_inline]] inline void ZeroBlocks(std::byte** at, size_t* bytes) {
  for (; *bytes >= kBytes; *bytes -= kBytes, *at += kBytes) {
#pragma GCC unroll 32
    for (size_t i = 0; i < kBytes; i += sizeof(uint64_t)) StoreWord(*at + i, 0);
  }
}

// Mostly many updates at once, or one.
void ZeroWords(std::byte* at, size_t bytes) {
  ZeroBlocks<256>(&at, &bytes);
  ZeroBlocks<64>(&at, &bytes);
  ZeroBlocks<sizeof(uint64_t)>(&at, &bytes);
}

}  // namespace

RingReader::RingReader(std::span<std::byte> ring, const Begin& begin)
    : ring_(ring),
      stream_id_(begin.stream_id),
      taken_{.lsn = begin.lsn, .position = begin.position},
      found_(taken_) {
  GANNET_CHECK(ring.size() >= 2 * kRingRecordBytesMax && ring.size() % kRecordAlignment == 0,
               "a ring has room for the two longest records");
  GANNET_CHECK(begin.position % kRecordAlignment == 0, "a record begins at a word");
}

// What is farther has not been freed since it was written.
size_t RingReader::RoomAt(const Place& place) const {
  return std::min<size_t>(ring_.size() - place.position % ring_.size(),
                          ring_.size() - (place.position - taken_.position));
}

std::optional<RingReader::Copy> RingReader::CopyAt(const Place& place) {
  const size_t room = RoomAt(place);
  if (room < sizeof(RingRecordStart)) return std::nullopt;
  const std::byte* const at = ring_.data() + place.position % ring_.size();
  RingRecordStart start;
  static_assert(offsetof(RingRecordStart, record_bytes) == sizeof(uint64_t));
  if (LoadWord(at + sizeof(uint64_t)) == 0) return std::nullopt;  // no record has the length 0
  LoadWords(&start, at, sizeof(start));
  const std::optional<size_t> bytes = LengthOfRingRecord(start);
  if (!bytes || *bytes > room) return std::nullopt;
  std::byte* const copy = proven_.Room(*bytes);
  LoadWords(copy, at, *bytes);
  if (start.kind == static_cast<uint8_t>(RingRecordKind::kUpdate)) {
    const auto proof = ProveUpdate(std::span(copy, *bytes), {stream_id_, place.lsn});
    if (!proof) return std::nullopt;
    return Copy{.kind = RingRecordKind::kUpdate,
                .committed = proof->committed,
                .item_checksum = proof->item_checksum,
                .bytes = {copy, *bytes}};
  }
  const auto view = DecodeRingRecord(std::span(copy, *bytes), {stream_id_, place.lsn});
  if (!view) return std::nullopt;
  return Copy{.kind = view->record.kind, .committed = view->committed, .bytes = {copy, *bytes}};
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
  for (;;) {
    ScanUpdates();
    const auto copy = RecordAt(&found_);
    if (!copy) return found_.lsn != before;
    const size_t bytes = copy->bytes.size();
    if (copy->kind == RingRecordKind::kUpdate) {
      KeepItemChecksum(copy->bytes.data(), copy->item_checksum);
    }
    proven_.Add(found_.position, bytes);
    found_.lsn += bytes;
    found_.position += bytes;
    committed_ = std::max(committed_, copy->committed);
  }
}

// Does what RecordAt and Scan do with any record, in one loop.
void RingReader::ScanUpdates() {
  const std::byte* at = ring_.data() + found_.position % ring_.size();
  size_t room = RoomAt(found_);
  Place found = found_;
  uint64_t committed = committed_;
  const uint64_t stream_id = stream_id_;  // the copies may alias each member
  ProvenRecords::Appender proven(&proven_);
  while (room >= sizeof(UpdateHeader)) {
    const uint64_t head = LoadWord(at + kUpdateHeadAt);
    const size_t bytes = static_cast<uint32_t>(head);
    if (head != UpdateHeadWord(bytes) || bytes < sizeof(UpdateHeader) || bytes > room ||
        bytes > kRingRecordBytesMax || bytes % kRecordAlignment != 0) {
      break;
    }
    std::byte* const copy = proven.Room(bytes);
    LoadRecord(copy, at, bytes);
    UpdateProof proof;
    if (!ProveUpdateInline(copy, bytes, {stream_id, found.lsn}, &proof)) break;
    KeepItemChecksum(copy, proof.item_checksum);
    proven.Add(found.position, bytes);
    committed = std::max(committed, proof.committed);
    found.lsn += bytes;
    found.position += bytes;
    at += bytes;
    room -= bytes;
  }
  found_ = found;
  committed_ = committed;
}

void RingReader::Zero(uint64_t from, size_t bytes) {
  const size_t offset = from % ring_.size();
  const size_t first = std::min(bytes, ring_.size() - offset);
  ZeroWords(ring_.data() + offset, first);
  ZeroWords(ring_.data(), bytes - first);
}

bool RingReader::TakeUpdates(uint64_t limit, UseUpdates use) {
  Place behind = taken_;
  const std::byte* const begin = proven_.At(proven_.begin());
  const std::byte* const end = proven_.At(proven_.end());
  const std::byte* at = begin;
  while (at != end) {
    const ProvenRecords::Head record = ProvenRecords::HeadOf(at);
    if (!IsUpdate(ProvenRecords::RecordOf(at)) || record.position != behind.position ||
        behind.lsn + record.bytes > limit) {
      break;
    }
    behind.lsn += record.bytes;
    behind.position += record.bytes;
    at = ProvenRecords::Behind(at, record.bytes);
  }
  if (at == begin) return false;
  use(ProvenUpdates::OfRecords(begin, at, taken_.lsn, behind.lsn));
  Zero(taken_.position, behind.position - taken_.position);
  taken_ = behind;
  proven_.PopTo(proven_.begin() + static_cast<size_t>(at - begin));
  return true;
}

void RingReader::Take(uint64_t limit, Use use, std::optional<UseUpdates> use_updates) {
  while (!proven_.empty()) {
    if (use_updates && TakeUpdates(limit, *use_updates)) continue;
    const ProvenRecords::Record proven = proven_.First();
    const size_t bytes = proven.bytes.size();
    if (taken_.lsn + bytes > limit) return;
    if (use_updates && KindOf(proven.bytes.data()) == RingRecordKind::kUpdateBatch) {
      (*use_updates)(ProvenUpdates::OfBatch(BodiesOf(proven.bytes), taken_.lsn + bytes));
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
