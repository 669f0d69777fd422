// A process may be killed in here, too, after any store. Until the end, the superblock has the
// former incarnation, and the header the one that the items are being sealed for. An item counts if
// it proves itself under either, so the next process begins again, and goes on with the same one.

#include "server/memory/store/adopter.h"

#include <algorithm>
#include <bit>

#include "common/base/parts.h"
#include "common/base/status_macros.h"
#include "common/base/words.h"
#include "server/memory/recovery/survey.h"
#include "server/memory/store/item_writer.h"
#include "server/memory/store/store_find.h"

namespace gannet {
namespace {

// So many buckets ahead, buckets and items are fetched into the cache.
constexpr uint64_t kBucketsAhead = 10;
constexpr uint64_t kItemsAhead = 3;
// So many expiries are noted at once.
constexpr size_t kExpiriesAtOnce = 1024;

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

// No two slots lead to the same item, so the threads store to different words. Each store counts by
// itself for a process that comes after a kill, so their order is of no matter until all are done.
void Adopter::Adopt(const Survey& survey, uint32_t threads) {
  for (const Survey::Table& table : survey.tables()) {
    const uint64_t buckets = table.slots.size();
    InParts(buckets, threads != 0 ? threads : Survey::ThreadsFor(buckets),
            [&](uint32_t, uint64_t first, uint64_t end) { AdoptItems(survey, table, first, end); });
  }
  for (const Survey::Restored& item : survey.restored()) Restore(item, survey.place());
  items_.recovery()->ClearIntents();
}

void Adopter::AdoptItems(const Survey& survey, const Survey::Table& table, uint64_t first,
                         uint64_t end) {
  std::vector<Expiring> expiries;
  VisitSlots(items_.region().data(), table, first, end, [&](Slot slot) {
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
  std::byte* const block = items_.Block(slot.offset());
  if (from.taking_over == 0 || !SealedFor(from, slot, from.taking_over)) {
    StoreWordRelease(block, SealedNow(LoadWord(block), from));
  }
  if (IsStub(slot)) [[unlikely]]
    items_.NoteStub(slot);
  else if (items_.eviction() != nullptr)
    items_.eviction()->heat.Set(slot.offset(), Heat::kUsedOnce);
}

uint64_t Adopter::SealedNow(uint64_t commit, const SurveyPlace& from) const {
  return (commit ^ from.incarnation ^ items_.first_superblock().incarnation) | kCommitLive;
}

void Adopter::AppendExpiry(Slot slot, std::vector<Expiring>* expiries) const {
  const Expiry expiry = ExpiryOf(items_.Block(slot.offset()));
  if (!expiry.never()) expiries->push_back({items_.KeyHashAt(slot), expiry});
}

void Adopter::NoteExpiries(std::span<const Expiring> expiries) {
  items_.CountExpiring(expiries.size());
  MutexLock lock(expiries_mutex_);
  for (const Expiring& item : expiries) {
    IndexTable& table = items_.index().TableOf(item.hash);
    table.floors.Lower(table.Home(item.hash), item.expiry.time());
  }
}

void Adopter::Restore(const Survey::Restored& item, const SurveyPlace& from) {
  std::byte* const block = items_.Block(item.slot.offset());
  StoreHeader(block, item.header.item);
  if (IsLargeClass(item.slot.size_class())) {
    StoreWord(block + offsetof(LargeItemHeader, placing), item.header.placing);
  }
  StoreLive(block, SealedNow(item.header.item.commit, from));
  std::vector<Expiring> expiries;
  AppendExpiry(item.slot, &expiries);
  NoteExpiries(expiries);
}

}  // namespace gannet
