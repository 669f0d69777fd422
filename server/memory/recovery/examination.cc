// --check of a memory file: lists which piece of memory holds what, and counts slots and bytes, to
// the last. It reads only.

#include "server/memory/recovery/examination.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/align.h"
#include "common/base/status_macros.h"
#include "common/base/words.h"
#include "common/layout/item.h"
#include "server/memory/heap/heap.h"
#include "server/memory/recovery/recovery_area.h"

namespace gannet {
namespace {

struct Piece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

uint64_t SlotOffset(const Survey::Table& table, uint64_t bucket, uint32_t i) {
  return table.geometry.BucketOffset(bucket) + offsetof(Bucket, slots) + i * sizeof(Slot);
}

// Lists which piece of memory holds what, and counts the slots.
std::vector<Piece> PiecesOf(std::span<const std::byte> region, const Survey& survey,
                            Examination* examination) {
  absl::flat_hash_map<uint64_t, Slot> redirected;
  for (const Survey::Redirected& slot : survey.redirected()) redirected[slot.offset] = slot.to;
  std::vector<Piece> pieces = {{0, survey.superblock().heap_offset}};
  pieces.reserve(survey.counts().items + 3);
  for (const Survey::Table& table : survey.tables()) {
    pieces.push_back({table.geometry.offset, table.geometry.bytes()});
    for (uint64_t bucket = 0; bucket < table.slots.size(); ++bucket) {
      for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
        const uint64_t at = SlotOffset(table, bucket, i);
        Slot slot(LoadWord(region.data() + at));
        ++examination->slots_total;
        examination->slots_empty += slot.empty();
        if ((table.slots[bucket].used >> i & 1) == 0) continue;
        if (const auto to = redirected.find(at); to != redirected.end()) slot = to->second;
        ItemHeader header;
        LoadWords(&header, region.data() + slot.offset(), sizeof(header));
        pieces.push_back({slot.offset(), ItemBytes(header.key_bytes(), header.value_bytes)});
      }
    }
  }
  return pieces;
}

// Goes over all bytes, from the first to the last.
absl::Status CountBytes(std::vector<Piece> pieces, Examination* examination) {
  std::ranges::sort(pieces, {}, &Piece::offset);
  uint64_t end = 0;
  uint64_t used = 0;
  for (const Piece& piece : pieces) {
    if (piece.offset < end || piece.bytes > examination->region_bytes - piece.offset) {
      return absl::InternalError(absl::StrCat("what lies at ", piece.offset, " with ", piece.bytes,
                                              " bytes overlaps what lies before it"));
    }
    examination->unused_bytes += piece.offset - end;
    used += piece.bytes;
    end = piece.offset + piece.bytes;
  }
  examination->unused_bytes += examination->region_bytes - end;
  examination->item_bytes = used - examination->reserved_bytes - examination->index_bytes;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Examination> Examine(std::span<std::byte> region) {
  if (region.size() <= kRecoveryEnd) {
    return absl::InvalidArgumentError("it is no memory file: it is too short");
  }
  Examination examination{.region_bytes = region.size()};
  GANNET_ASSIGN_OR_RETURN(examination.has_items, RecoveryArea::HasItems(region));
  if (!examination.has_items) return examination;
  const uint64_t heap_offset = AlignUp(kRecoveryEnd, SmallBlocks::PageBytes());
  GANNET_ASSIGN_OR_RETURN(const Survey survey, Survey::Of(region, heap_offset));
  // A start makes the heap again, so this does, too. It does not touch the memory.
  GANNET_RETURN_IF_ERROR(Heap::Create(region.subspan(heap_offset), &survey.heap()).status());
  examination.stopped_in_order = survey.stopped_in_order();
  examination.incarnation = survey.superblock().incarnation;
  examination.counts = survey.counts();
  examination.reserved_bytes = heap_offset;
  for (const Survey::Table& table : survey.tables()) {
    examination.index_bytes += table.geometry.bytes();
  }
  for (uint64_t i = 0; i < kIntents; ++i) {
    examination.intents += LoadIntent(region, i).has_value();
  }
  GANNET_RETURN_IF_ERROR(CountBytes(PiecesOf(region, survey, &examination), &examination));
  const SurveyCounts& counts = examination.counts;
  const uint64_t slots = examination.slots_empty + counts.items + counts.unfinished +
                         counts.leftovers + counts.dropped();
  if (slots == examination.slots_total) return examination;
  return absl::InternalError(
      absl::StrCat("looked at ", slots, " of ", examination.slots_total, " slots"));
}

}  // namespace gannet
