// A process may be killed in here, too, after any store. Until the end, the superblock has the
// former incarnation, and the header the one that the items are being sealed for. An item counts if
// it proves itself under either, so the next process begins again, and goes on with the same one.

#include "server/store/adopter.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "common/base/parts.h"
#include "common/base/status_macros.h"
#include "common/base/words.h"
#include "server/recovery/survey.h"
#include "server/store/item_writer.h"
#include "server/store/store_find.h"

namespace gannet {
namespace {

// So many buckets ahead, buckets and items are fetched into the cache.
constexpr uint64_t kBucketsAhead = 10;
constexpr uint64_t kItemsAhead = 3;
// So many expiries are noted at once.
constexpr size_t kExpiriesAtOnce = 1024;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Calls `visit` with the slots that stay in the buckets [first, end). Fetches what it comes to into
// the cache before.
template <class Visit>
void VisitSlots(const std::byte* region, const Survey::Table& table, uint64_t first, uint64_t end,
                Visit visit) {
  const auto slot_at = [&](uint64_t bucket, uint32_t i) {
    return Slot(LoadWord(region + table.geometry.BucketOffset(bucket) + offsetof(Bucket, slots) +
                         i * sizeof(Slot)));
  };
  for (uint64_t bucket = first; bucket < end; ++bucket) {
    if (bucket + kBucketsAhead < end) {
      const std::byte* const ahead = region + table.geometry.BucketOffset(bucket + kBucketsAhead);
      __builtin_prefetch(ahead);
      __builtin_prefetch(ahead + kBucketBytes / 2);
    }
    if (const uint64_t ahead = bucket + kItemsAhead; ahead < end) {
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
  GANNET_ASSIGN_OR_RETURN(const Survey survey,
                          Survey::Of(options.region, heap_offset, options.take_over_threads));
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
  Adopter(*store).Adopt(survey, options.take_over_threads);
  store->taken_over_ = {survey.stopped_in_order(), survey.counts(), SecondsSince(start)};
  return store;
}

// No two slots lead to the same item, so the threads store to different words. Each store counts by
// itself for a process that comes after a kill, so their order is of no matter until all are done.
void Adopter::Adopt(const Survey& survey, uint32_t threads) {
  for (const Survey::Table& table : survey.tables()) {
    const uint64_t buckets = table.slots.size();
    InParts(buckets, threads != 0 ? threads : Survey::ThreadsFor(buckets),
            [&](uint32_t, uint64_t first, uint64_t end) { AdoptItems(survey, table, first, end); });
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

void Adopter::AdoptItems(const Survey& survey, const Survey::Table& table, uint64_t first,
                         uint64_t end) {
  std::vector<Expiry> expiries;
  VisitSlots(store_.region_.data(), table, first, end, [&](Slot slot) {
    AdoptItem(slot, survey.place());
    AppendExpiry(slot, &expiries);
    if (expiries.size() < kExpiriesAtOnce) return;
    NoteExpiries(expiries);
    expiries.clear();
  });
  NoteExpiries(expiries);
}

// The seal of an item differs by the incarnation alone.
void Adopter::AdoptItem(Slot slot, const SurveyPlace& from) {
  std::byte* const block = store_.Block(slot.offset());
  if (from.taking_over == 0 || !SealedFor(from, slot, from.taking_over)) {
    StoreWordRelease(block, SealedNow(LoadWord(block), from));
  }
  if (store_.evicts()) store_.evictor_->state().heat.Set(slot.offset(), Heat::kUsedOnce);
}

uint64_t Adopter::SealedNow(uint64_t commit, const SurveyPlace& from) const {
  return (commit ^ from.incarnation ^ store_.superblock_.incarnation) | kCommitLive;
}

void Adopter::AppendExpiry(Slot slot, std::vector<Expiry>* expiries) const {
  const uint64_t expiry_ms = ExpiryMs(store_.Block(slot.offset()));
  if (expiry_ms != 0) expiries->push_back({store_.KeyHashAt(slot), expiry_ms});
}

void Adopter::NoteExpiries(std::span<const Expiry> expiries) {
  MutexLock lock(expiries_mutex_);
  for (const Expiry& expiry : expiries) {
    IndexTable& table = store_.index_.TableOf(expiry.hash);
    table.floors.Lower(table.Home(expiry.hash), expiry.ms);
  }
}

void Adopter::Restore(const Survey::Restored& item, const SurveyPlace& from) {
  std::byte* const block = store_.Block(item.slot.offset());
  StoreHeader(block, item.header.item);
  if (IsLargeClass(item.slot.size_class())) {
    StoreWord(block + offsetof(LargeItemHeader, placing), item.header.placing);
  }
  StoreLive(block, SealedNow(item.header.item.commit, from));
  std::vector<Expiry> expiries;
  AppendExpiry(item.slot, &expiries);
  NoteExpiries(expiries);
}

}  // namespace gannet
