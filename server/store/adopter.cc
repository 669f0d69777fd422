// A process may be killed in here, too, after any store. Until the end, the superblock has the
// former incarnation, and the header the one that the items are being sealed for. An item counts if
// it proves itself under either, so the next process begins again, and goes on with the same one.

#include "server/store/adopter.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "common/base/status_macros.h"
#include "common/base/words.h"
#include "server/recovery/survey.h"
#include "server/store/item_writer.h"
#include "server/store/store_find.h"

namespace gannet {
namespace {

constexpr uint64_t kBucketsAhead = 4;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Calls `visit` with the slots that stay. Fetches items into the cache before it comes to them.
template <class Visit>
void VisitSlots(const std::byte* region, const Survey::Table& table, Visit visit) {
  const auto slot_at = [&](uint64_t bucket, uint32_t i) {
    return Slot(LoadWord(region + table.geometry.BucketOffset(bucket) + offsetof(Bucket, slots) +
                         i * sizeof(Slot)));
  };
  for (uint64_t bucket = 0; bucket < table.slots.size(); ++bucket) {
    if (const uint64_t ahead = bucket + kBucketsAhead; ahead < table.slots.size()) {
      for (uint32_t rest = table.slots[ahead].used; rest != 0; rest &= rest - 1) {
        __builtin_prefetch(region + slot_at(ahead, std::countr_zero(rest)).offset(), 1);
      }
    }
    for (uint32_t rest = table.slots[bucket].used; rest != 0; rest &= rest - 1) {
      visit(slot_at(bucket, std::countr_zero(rest)));
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Adopter::TakeOver(const Store::Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const uint64_t heap_offset = AlignUp(kRecoveryEnd, options.page_bytes);
  GANNET_ASSIGN_OR_RETURN(const Survey survey, Survey::Of(options.region, heap_offset));
  GANNET_ASSIGN_OR_RETURN(auto heap,
                          Heap::Create(options.region.subspan(heap_offset), survey.heap()));
  // Nothing was changed up to here.
  Store::Options adopted = options;
  adopted.first_version = std::max(options.first_version, survey.versions_end());
  Superblock superblock = survey.superblock();
  const uint64_t begun = survey.place().taking_over;
  superblock.incarnation = begun != 0 ? begun : options.incarnation;
  RecoveryArea(options.region).SetTakingOver(superblock.incarnation);
  for (const Survey::Redirected& slot : survey.redirected()) {
    StoreWordRelease(options.region.data() + slot.offset, slot.to.word());
  }
  std::unique_ptr<Store> store(new Store(adopted, superblock, std::move(heap), &survey));
  Adopter(*store).Adopt(survey);
  store->taken_over_ = {survey.stopped_in_order(), survey.counts(), SecondsSince(start)};
  return store;
}

void Adopter::Adopt(const Survey& survey) {
  for (const Survey::Table& table : survey.tables()) {
    VisitSlots(store_.region_.data(), table, [&](Slot slot) { AdoptItem(slot, survey.place()); });
  }
  for (const Survey::Restored& item : survey.restored()) Restore(item, survey.place());
  store_.recovery_->ClearIntents();
  PublishIndex(survey);
  store_.recovery_->SetTakingOver(0);
  store_.recovery_->SetNextVersion(store_.next_version_.load(std::memory_order_relaxed));
  store_.recovery_->SetState(RegionState::kServing);
}

void Adopter::PublishIndex(const Survey& survey) {
  const bool growing = survey.tables().size() == 2;
  if (growing) {
    MutexLock lock(store_.grow_mutex_);
    store_.next_ = survey.tables().back().geometry;
    store_.grow_phase_.store(Store::GrowPhase::kMigrating, std::memory_order_relaxed);
  }
  store_.PublishIndex(survey.superblock().index, survey.superblock().next_index);
  if (!growing) store_.WatchFill();
}

// The seal of an item differs by the incarnation alone.
void Adopter::AdoptItem(Slot slot, const SurveyPlace& from) {
  std::byte* const block = store_.Block(slot.offset());
  if (from.taking_over == 0 || !SealedFor(from, slot, from.taking_over)) {
    StoreWordRelease(block, SealedNow(LoadWord(block), from));
  }
  if (store_.evicts()) store_.evictor_->state().heat.Set(slot.offset(), Heat::kUsedOnce);
  NoteExpiry(slot);
}

uint64_t Adopter::SealedNow(uint64_t commit, const SurveyPlace& from) const {
  return (commit ^ from.incarnation ^ store_.superblock_.incarnation) | kCommitLive;
}

void Adopter::NoteExpiry(Slot slot) {
  const uint64_t expiry_ms = ExpiryMs(store_.Block(slot.offset()));
  if (expiry_ms == 0) return;
  const KeyHash hash = store_.KeyHashAt(slot);
  IndexTable& table = store_.index_.TableOf(hash);
  table.floors.Lower(table.Home(hash), expiry_ms);
}

void Adopter::Restore(const Survey::Restored& item, const SurveyPlace& from) {
  std::byte* const block = store_.Block(item.slot.offset());
  StoreHeader(block, item.header.item);
  if (IsLargeClass(item.slot.size_class())) {
    StoreWord(block + offsetof(LargeItemHeader, placing), item.header.placing);
  }
  StoreLive(block, SealedNow(item.header.item.commit, from));
  NoteExpiry(item.slot);
}

}  // namespace gannet
