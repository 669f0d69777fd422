// Looks at each slot of a former process's index, and decides whether it stays: its item must prove
// itself, belong into the bucket, and share no byte with another one. An intent tells what a killed
// write had begun, so an item that was superseded comes back if its successor is not whole. Nothing
// in the file is changed here. Threads share only heap_.

#include "server/memory/recovery/survey.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/words.h"
#include "common/layout/stub.h"
#include "server/memory/heap/heap.h"

namespace gannet {
namespace {

// Buckets and items are fetched into the cache this many buckets ahead. A bucket has some ten
// items, and each takes a few lines.
constexpr uint64_t kBucketsSurveyedAhead = 10;
constexpr uint64_t kItemsSurveyedAhead = 2;
constexpr uint64_t kLineBytes = 64;
// So much of an item is prefetched. The processor fetches the rest of a longer one by itself.
constexpr uint64_t kItemBytesAhead = 256;

absl::Status Damaged() {
  return absl::DataLossError("its superblock is damaged; to start empty, remove the file");
}

// What another version wrote is not damaged.
absl::Status WhyNotTaken(std::span<const std::byte> region) {
  for (const uint64_t offset : {uint64_t{0}, kSuperblockCopyOffset}) {
    Superblock superblock;
    LoadWords(&superblock, region.data() + offset, sizeof(superblock));
    if (superblock.magic == kSuperblockMagic && superblock.layout_version != kLayoutVersion) {
      return absl::FailedPreconditionError(absl::StrCat(
          "its layout has version ", superblock.layout_version, ", this kvserver's is ",
          kLayoutVersion, "; start the release that wrote it, or remove the file to start empty"));
    }
  }
  return Damaged();
}

bool HasNext(const Superblock& superblock) { return superblock.next_index.homes != 0; }

bool Plausible(const Superblock& superblock, uint64_t region_bytes, uint64_t heap_offset) {
  if (superblock.region_bytes != region_bytes || superblock.heap_offset != heap_offset ||
      superblock.incarnation == 0 || superblock.index.offset < heap_offset) {
    return false;
  }
  const IndexGeometry& next = superblock.next_index;
  return !HasNext(superblock) ||
         (next.ValidWithin(region_bytes) && next.homes >= superblock.index.homes &&
          next.offset >= heap_offset);
}

}  // namespace

void SurveyCounts::Add(const SurveyCounts& other) {
  items += other.items;
  item_bytes += other.item_bytes;
  large_items += other.large_items;
  stubs += other.stubs;
  unfinished += other.unfinished;
  leftovers += other.leftovers;
  rolled_back += other.rolled_back;
  torn += other.torn;
  misplaced += other.misplaced;
  overlapping += other.overlapping;
}

absl::StatusOr<Survey> Survey::Of(std::span<const std::byte> region, uint64_t heap_offset,
                                  uint32_t threads) {
  const std::optional<Superblock> superblock = LoadSuperblock(region);
  if (!superblock || !Plausible(*superblock, region.size(), heap_offset)) {
    return WhyNotTaken(region);
  }
  Survey survey(region, *superblock);
  survey.LoadIntents();
  GANNET_RETURN_IF_ERROR(survey.AddTable(superblock->index));
  if (HasNext(*superblock)) GANNET_RETURN_IF_ERROR(survey.AddTable(superblock->next_index));
  for (Table& table : survey.tables_) {
    const uint64_t buckets = table.slots.size();
    const uint32_t parts = threads != 0 ? threads : ThreadsFor(buckets);
    std::vector<Found> found(parts);
    InParts(buckets, parts, [&](uint32_t part, uint64_t first, uint64_t end) {
      found[part] = survey.LookAt(table, first, end);
    });
    for (const Found& of_part : found) survey.Add(of_part);
  }
  return survey;
}

Survey::Survey(std::span<const std::byte> region, const Superblock& superblock)
    : superblock_(superblock), heap_(region.size() - superblock.heap_offset) {
  const RecoveryHeader header = LoadRecoveryHeader(region);
  place_ = {region, superblock.heap_offset, superblock.hash_seed, superblock.incarnation,
            header.taking_over};
  stopped_in_order_ = header.state == static_cast<uint64_t>(RegionState::kStopped);
  if (header.versions_end == ~header.not_versions_end) found_.versions_end = header.versions_end;
}

void Survey::LoadIntents() {
  for (uint64_t i = 0; i < kIntents; ++i) {
    if (const auto intent = LoadIntent(place_.region, i)) intents_[intent->old_slot] = *intent;
  }
}

absl::Status Survey::AddTable(const IndexGeometry& geometry) {
  if (heap_.TakeTable(geometry.offset - place_.heap_offset, geometry.bytes()) !=
      HeapMap::Taken::kNow) {
    return Damaged();
  }
  tables_.push_back({geometry, std::vector<BucketSlots>(geometry.buckets())});
  return absl::OkStatus();
}

void Survey::Prefetch(const Table& table, uint64_t bucket) const {
  const auto at = [&](uint64_t i) { return place_.region.data() + table.geometry.BucketOffset(i); };
  if (bucket + kBucketsSurveyedAhead < table.slots.size()) {
    __builtin_prefetch(at(bucket + kBucketsSurveyedAhead));
    __builtin_prefetch(at(bucket + kBucketsSurveyedAhead) + kLineBytes);
  }
  if (bucket + kItemsSurveyedAhead >= table.slots.size()) return;
  const std::byte* const slots = at(bucket + kItemsSurveyedAhead) + offsetof(Bucket, slots);
  for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    const Slot slot(LoadWord(slots + i * sizeof(Slot)));
    if (slot.empty() || slot.offset() < place_.heap_offset ||
        slot.offset() + sizeof(LargeItemHeader) > place_.region.size()) {
      continue;
    }
    heap_.Prefetch(slot.offset() - place_.heap_offset);
    const uint64_t bytes = std::min<uint64_t>(slot.read_bytes(), kItemBytesAhead);
    for (uint64_t line = 0; line < bytes; line += kLineBytes) {
      __builtin_prefetch(place_.region.data() + slot.offset() + line);
    }
  }
}

Survey::Found Survey::LookAt(Table& table, uint64_t first, uint64_t end) {
  Found found;
  for (uint64_t bucket = first; bucket < end; ++bucket) LookAt(table, bucket, &found);
  return found;
}

// The checksums of buckets are for readers. A killed process leaves some that are wrong, so they
// are not checked here. Each slot is one word, and its item proves it.
void Survey::LookAt(Table& table, uint64_t bucket, Found* found) {
  Prefetch(table, bucket);
  const uint64_t slots = table.geometry.BucketOffset(bucket) + offsetof(Bucket, slots);
  for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    bool from_previous = false;
    if (!Stays(table, bucket, slots + i * sizeof(Slot), &from_previous, found)) continue;
    table.slots[bucket].used |= 1u << i;
    if (from_previous) table.slots[bucket].from_previous |= 1u << i;
  }
}

void Survey::Add(const Found& found) {
  found_.counts.Add(found.counts);
  found_.redirected.insert(found_.redirected.end(), found.redirected.begin(),
                           found.redirected.end());
  found_.restored.insert(found_.restored.end(), found.restored.begin(), found.restored.end());
  found_.versions_end = std::max(found_.versions_end, found.versions_end);
}

bool Survey::Stays(const Table& table, uint64_t bucket, uint64_t slot_offset, bool* from_previous,
                   Found* found) {
  const Slot original(LoadWord(place_.region.data() + slot_offset));
  if (original.empty()) return false;
  Slot slot = original;
  SurveyCounts& counts = found->counts;
  const size_t restored = found->restored.size();
  const SurveyedItem item = ItemOf(&slot, &found->restored);
  const auto drop = [&](uint64_t* counter) {
    ++*(MayBeLeftover(table, bucket) ? &counts.leftovers : counter);
    found->restored.resize(restored);
    return false;
  };
  if (item.state == ItemState::kDead) return drop(&counts.unfinished);
  if (item.state == ItemState::kTorn) return drop(&counts.torn);
  if (item.state == ItemState::kNone || !Belongs(table, bucket, slot, item.hash, from_previous)) {
    return drop(&counts.misplaced);
  }
  if (!Counts(table, item.hash)) return drop(&counts.leftovers);
  const HeapMap::Taken taken = heap_.Take(slot.offset() - place_.heap_offset, item.bytes);
  if (taken == HeapMap::Taken::kBefore) return drop(&counts.leftovers);
  if (taken == HeapMap::Taken::kImpossible) return drop(&counts.overlapping);
  if (slot != original) found->redirected.push_back({slot_offset, slot});
  if (found->restored.size() > restored || item.state == ItemState::kSuperseded) {
    ++counts.rolled_back;
  }
  ++counts.items;
  counts.item_bytes += Heap::BlockBytes(item.bytes);
  counts.large_items += IsLargeClass(slot.size_class());
  counts.stubs += IsStub(slot);
  found->versions_end = std::max(found->versions_end, item.versions_end);
  return true;
}

SurveyedItem Survey::ItemOf(Slot* slot, std::vector<Restored>* restored) const {
  SurveyedItem item = SurveyItem(place_, *slot);
  if (item.state == ItemState::kLive) return item;
  const auto at = intents_.find(slot->word());
  if (at == intents_.end()) {
    // It was superseded, and there is no intent. So what took its place is gone, by damage.
    if (item.state == ItemState::kSuperseded) item.state = ItemState::kDead;
    return item;
  }
  const Intent& intent = at->second;
  if (intent.kind == Intent::kReplace) {
    const Slot other(intent.words[0]);
    const SurveyedItem replacement = SurveyItem(place_, other);
    if (replacement.state != ItemState::kLive) return item;
    *slot = other;
    return replacement;
  }
  LargeItemHeader header;
  static_assert(sizeof(header) == sizeof(intent.words));
  std::memcpy(&header, intent.words, sizeof(header));
  const SurveyedItem before = SurveyItem(place_, *slot, &header);
  if (before.state != ItemState::kLive) return item;
  restored->push_back({*slot, header});
  return before;
}

bool Survey::Belongs(const Table& table, uint64_t bucket, Slot slot, KeyHash hash,
                     bool* from_previous) const {
  const IndexGeometry& geometry = table.geometry;
  if (hash.Tag() != slot.tag()) return false;
  const bool in_stash = bucket >= geometry.main_buckets();
  const uint64_t number = in_stash ? bucket - geometry.main_buckets() : bucket;
  const uint64_t home = in_stash ? hash.StashHome(geometry.stash_homes) : hash.Home(geometry.homes);
  *from_previous = !in_stash && home != number;
  return home == number || home + 1 == number;
}

bool Survey::Migrated(const IndexGeometry& geometry, uint64_t home) const {
  return BucketMeta(
             LoadWord(place_.region.data() + geometry.BucketOffset(home) + offsetof(Bucket, meta)))
      .migrated();
}

bool Survey::MayBeLeftover(const Table& table, uint64_t bucket) const {
  if (tables_.size() == 1 || &table != &tables_.front()) return false;
  const IndexGeometry& old = table.geometry;
  return bucket >= old.main_buckets() || (bucket < old.homes && Migrated(old, bucket)) ||
         (bucket > 0 && Migrated(old, bucket - 1));
}

bool Survey::Counts(const Table& table, KeyHash hash) const {
  if (tables_.size() == 1) return true;
  const IndexGeometry& old = tables_.front().geometry;
  return Migrated(old, hash.Home(old.homes)) == (&table != &tables_.front());
}

}  // namespace gannet
