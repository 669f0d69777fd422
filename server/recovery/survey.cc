#include "server/recovery/survey.h"

#include <algorithm>
#include <cstring>

#include "common/base/status_macros.h"
#include "common/base/words.h"

namespace gannet {
namespace {

// So many buckets ahead, items are fetched into the cache.
constexpr uint64_t kBucketsAhead = 4;

absl::Status Damaged() {
  return absl::DataLossError("its superblock is damaged; to start empty, remove the file");
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

absl::StatusOr<Survey> Survey::Of(std::span<const std::byte> region, uint64_t heap_offset) {
  const std::optional<Superblock> superblock = LoadSuperblock(region);
  if (!superblock || !Plausible(*superblock, region.size(), heap_offset)) return Damaged();
  Survey survey(region, *superblock);
  survey.LoadIntents();
  GANNET_RETURN_IF_ERROR(survey.AddTable(superblock->index));
  if (HasNext(*superblock)) GANNET_RETURN_IF_ERROR(survey.AddTable(superblock->next_index));
  for (Table& table : survey.tables_) {
    for (uint64_t bucket = 0; bucket < table.slots.size(); ++bucket) survey.LookAt(table, bucket);
  }
  return survey;
}

Survey::Survey(std::span<const std::byte> region, const Superblock& superblock)
    : superblock_(superblock), heap_(region.size() - superblock.heap_offset) {
  const RecoveryHeader header = LoadRecoveryHeader(region);
  place_ = {region, superblock.heap_offset, superblock.hash_seed, superblock.incarnation,
            header.taking_over};
  stopped_in_order_ = header.state == static_cast<uint64_t>(RegionState::kStopped);
  if (header.versions_end == ~header.not_versions_end) versions_end_ = header.versions_end;
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
  const std::byte* const slots =
      place_.region.data() + table.geometry.BucketOffset(bucket) + offsetof(Bucket, slots);
  for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    const Slot slot(LoadWord(slots + i * sizeof(Slot)));
    if (slot.offset() + sizeof(LargeItemHeader) > place_.region.size()) continue;
    __builtin_prefetch(place_.region.data() + slot.offset());
    __builtin_prefetch(place_.region.data() + slot.offset() + 64);
  }
}

// Checksums of buckets are for readers. A process that is killed leaves some that are wrong, and
// each slot is one word, which proves itself by its item.
void Survey::LookAt(Table& table, uint64_t bucket) {
  if (bucket + kBucketsAhead < table.slots.size()) Prefetch(table, bucket + kBucketsAhead);
  const uint64_t slots = table.geometry.BucketOffset(bucket) + offsetof(Bucket, slots);
  for (uint32_t i = 0; i < kSlotsPerBucket; ++i) {
    bool from_previous = false;
    if (!Stays(table, bucket, slots + i * sizeof(Slot), &from_previous)) continue;
    table.slots[bucket].used |= 1u << i;
    if (from_previous) table.slots[bucket].from_previous |= 1u << i;
  }
}

bool Survey::Stays(const Table& table, uint64_t bucket, uint64_t slot_offset, bool* from_previous) {
  const Slot found(LoadWord(place_.region.data() + slot_offset));
  if (found.empty()) return false;
  Slot slot = found;
  const size_t restored = restored_.size();
  const SurveyedItem item = ItemOf(&slot);
  const auto drop = [&](uint64_t* counter) {
    ++*(MayBeLeftover(table, bucket) ? &counts_.leftovers : counter);
    restored_.resize(restored);
    return false;
  };
  if (item.state == ItemState::kDead) return drop(&counts_.unfinished);
  if (item.state == ItemState::kTorn) return drop(&counts_.torn);
  if (item.state == ItemState::kNone || !Belongs(table, bucket, slot, item.hash, from_previous)) {
    return drop(&counts_.misplaced);
  }
  if (!Counts(table, item.hash)) return drop(&counts_.leftovers);
  const HeapMap::Taken taken = heap_.Take(slot.offset() - place_.heap_offset, slot.read_bytes());
  if (taken == HeapMap::Taken::kBefore) return drop(&counts_.leftovers);
  if (taken == HeapMap::Taken::kImpossible) return drop(&counts_.overlapping);
  if (slot != found) redirected_.push_back({slot_offset, slot});
  if (restored_.size() > restored || item.state == ItemState::kSuperseded) ++counts_.rolled_back;
  ++counts_.items;
  counts_.item_bytes += slot.read_bytes();
  counts_.large_items += IsLargeClass(slot.size_class());
  versions_end_ = std::max(versions_end_, item.versions_end);
  return true;
}

SurveyedItem Survey::ItemOf(Slot* slot) {
  SurveyedItem item = SurveyItem(place_, *slot);
  const auto at = intents_.find(slot->word());
  if (at == intents_.end() || item.state == ItemState::kLive) {
    // Superseded, and no intent: what took its place is gone, by damage.
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
  restored_.push_back({*slot, header});
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
