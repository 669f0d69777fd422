#include "common/lookup/index_walk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/layout/item_proof.h"
#include "common/layout/key_hash.h"
#include "common/layout/large_proof.h"
#include "common/layout/stub.h"
#include "common/lookup/window.h"

namespace gannet {

IndexWalk::IndexWalk(const IndexView* view, const WantedItems* wanted, uint64_t begin,
                     Windows windows)
    : view_(view), begin_(begin), wanted_(wanted), reads_again_(windows == Windows::kReadAgain) {
  ranges_.push_back({begin, kEnd, 0});
  Plan();
}

uint64_t IndexWalk::CutOff(uint64_t hashes_min) {
  GANNET_CHECK(step() == Step::kReadBuckets, "a walk is cut off between its runs");
  if (phase_ != Phase::kHomes || rounds_ > 0 || ranges_.empty() || again_) return 0;
  const auto position = static_cast<uint64_t>(ranges_.back().begin);
  if (position - begin_ < hashes_min) return 0;
  ranges_.clear();
  Plan();
  return position;
}

// A stub's slot does not say how long its block is. The longest one may reach over the region's
// end.
uint32_t IndexWalk::ReadBytesOf(Slot slot) const {
  if (IsStub(slot)) {
    const uint64_t longest = SizeClassBytes(BlockClass(slot, kKeyBytesMax));
    return static_cast<uint32_t>(std::min(longest, view_->region_bytes - slot.offset()));
  }
  return IsLargeClass(slot.size_class()) ? kLargeHeadBytes
                                         : static_cast<uint32_t>(slot.read_bytes());
}

double IndexWalk::done() const {
  if (step_ == Step::kDone) return 1;
  return static_cast<double>(reached_) / static_cast<double>(kEnd);
}

// Returns the lowest hash that MapToRange maps to `home` or above.
IndexWalk::Position IndexWalk::FirstHash(uint64_t home, uint64_t homes) {
  if (home >= homes) return kEnd;
  return ((Position{home} << 64) + homes - 1) / homes;
}

// Returns nullptr if the view does not have such an index.
const IndexGeometry* IndexWalk::IndexFrom(uint64_t generation_min) const {
  for (const IndexGeometry* index : {&view_->index, &view_->next}) {
    if (index->homes != 0 && index->generation >= generation_min) return index;
  }
  return nullptr;
}

void IndexWalk::Plan() {
  items_.clear();
  doubtful_ = kNoBucket;
  switch (phase_) {
    case Phase::kHomes:
      return PlanHomes();
    case Phase::kStash:
      return PlanStash();
    case Phase::kConfirm:
      return PlanConfirm();
  }
}

void IndexWalk::PlanRead(const IndexGeometry& index, uint64_t first, uint32_t buckets) {
  index_ = index;
  first_ = first;
  read_ = {index.BucketOffset(first), static_cast<uint32_t>(buckets * kBucketBytes)};
  step_ = Step::kReadBuckets;
}

void IndexWalk::PlanHomes() {
  if (ranges_.empty()) return BeginStash();
  const Range& range = ranges_.back();
  const IndexGeometry* index = IndexFrom(range.generation_min);
  if (index == nullptr) {
    step_ = Step::kWantIndex;
    return;
  }
  const uint64_t home = MapToRange(static_cast<uint64_t>(range.begin), index->homes);
  const uint64_t last = MapToRange(static_cast<uint64_t>(range.end - 1), index->homes);
  const uint64_t homes = std::min<uint64_t>(last - home + 1, changes_ ? 1 : kBucketsMax - 1);
  PlanRead(*index, home, static_cast<uint32_t>(homes) + 1);
}

void IndexWalk::OnBuckets(std::span<const std::byte> copy, int64_t posted_ns, int64_t now_ns) {
  GANNET_CHECK(copy.size() == read_.bytes, "a run of buckets");
  if (again_) return OnAgain(copy, now_ns);
  run_posted_ns_ = posted_ns;
  copy_.resize(copy.size() / kBucketBytes);
  std::memcpy(copy_.data(), copy.data(), copy.size());
  switch (phase_) {
    case Phase::kHomes:
      return OnHomes(reads_again_ || now_ns - posted_ns < Lookup::kMissReadNsMax);
    case Phase::kStash:
      return OnStash();
    case Phase::kConfirm:
      return OnConfirm();
  }
}

bool IndexWalk::Valid(uint32_t i) const {
  return BucketValid(copy_[i], BucketSeed(view_->incarnation, index_.generation, first_ + i));
}

// Takes the homes up to the first one that is migrated, or whose copy is not consistent.
void IndexWalk::OnHomes(bool in_time) {
  const auto homes = static_cast<uint32_t>(copy_.size()) - 1;
  run_ = 0;
  const auto consistent = [this](uint32_t i) {
    return Valid(i) && Valid(i + 1) && PairCountersAgree(&copy_[i]);
  };
  if (!in_time) return Retry();
  while (run_ < homes && consistent(run_) && !BucketMeta(copy_[run_].meta).migrated()) ++run_;
  if (run_ > 0) return TakeSlots(run_ + 1);
  return consistent(0) && BucketMeta(copy_[0].meta).migrated() ? OnMigrated() : Retry();
}

// The home's keys are in the next index. They were published there before the flag was set, so a
// READ that is posted now finds them.
void IndexWalk::OnMigrated() {
  Range& range = ranges_.back();
  const Range moved = {range.begin, std::min(range.end, FirstHash(first_ + 1, index_.homes)),
                       index_.generation + 1};
  range.begin = moved.end;
  if (range.begin >= range.end) ranges_.pop_back();
  ranges_.push_back(moved);
  ++advances_;
  proven_.clear();
  Plan();
}

void IndexWalk::TakeSlots(uint32_t buckets) {
  items_.clear();
  item_buckets_.clear();
  const uint32_t least = phase_ == Phase::kHomes ? 2 : 1;  // buckets of a run
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < buckets; ++i) {
    if (reads_again_ && bytes > kRunBytesMax && i >= least) {
      CutRun(i);
      break;
    }
    for (const uint64_t word : copy_[i].slots) {
      const Slot slot(word);
      if (slot.empty() || proven_.contains(word)) continue;
      if (!view_->Contains(slot.offset(), SizeClassBytes(BlockClass(slot, /*key_bytes=*/1)))) {
        // The checksum is right, so it will not change if it is READ again.
        step_ = Step::kUnknownSlot;
        return;
      }
      if (wanted_ != nullptr && !wanted_->IsWanted(slot.offset())) continue;
      bytes += slot.read_bytes();
      items_.push_back(slot);
      item_buckets_.push_back(i);
    }
  }
  step_ = Step::kReadItems;
  if (items_.empty()) OnItemsDone();
}

// Returns whether a key with this hash may be in this slot of the run.
bool IndexWalk::Fits(uint32_t bucket, Slot slot, KeyHash hash) const {
  if (hash.Tag() != slot.tag()) return false;
  const uint64_t number = first_ + bucket;
  const uint64_t first = phase_ == Phase::kStash
                             ? index_.StashBucket(hash.StashHome(index_.stash_homes))
                             : hash.Home(index_.homes);
  return number == first || number == first + 1;
}

std::optional<IndexWalk::Item> IndexWalk::OnItem(size_t i, std::span<const std::byte> copy) {
  const Slot slot = items_[i];
  const ItemPlace place = {view_->incarnation, view_->hash_seed, slot.offset()};
  Item item;
  bool whole = false;
  if (IsLargeClass(slot.size_class())) {
    LargeItemHeader header;
    const std::span<const std::byte, kLargeHeadBytes> head(copy.data(), kLargeHeadBytes);
    // No key is empty, so a whole item is another key's.
    whole = ProveLargeItem(head, place, {}, KeyHash(0), &header) == ItemProof::kOtherKey;
    if (whole) {
      item = {
          header.item,
          {reinterpret_cast<const char*>(copy.data()) + sizeof(header), header.item.key_bytes()},
          {}};
    }
  } else {
    ItemView view;
    const ItemPlace sealed_at = IsStub(slot) ? StubPlace(place) : place;
    whole = ProveOtherItem(copy, sealed_at, &view) == ItemProof::kOtherKey;
    if (whole) item = {view.header, view.key, view.value};
  }
  if (whole && IsStub(slot)) {
    const std::optional<StubValue> stub = DecodeStub(item.value);
    unknown_ |= !stub;
    item.header.value_bytes = stub ? stub->value_bytes : 0;
    item.value = {};
  }
  const KeyHash hash = KeyHash::Of(whole ? item.key : "", view_->hash_seed);
  if (!whole || !Fits(item_buckets_[i], slot, hash)) {
    Doubt(item_buckets_[i]);
    return std::nullopt;
  }
  if (phase_ == Phase::kStash) {
    if (!reads_again_) proven_.insert(slot.word());
    return item;
  }
  // The first bucket of a run also has keys of the home before it, and the last one keys of the
  // home behind it. READ again, the run may be longer and include that home.
  const uint64_t home = hash.Home(index_.homes);
  const Range& range = ranges_.back();
  const bool outside = hash.value() < range.begin || hash.value() >= range.end;
  const bool of_run = !outside && home >= first_ && home < first_ + run_;
  // A run that is READ again begins anew: its slots may have got other keys.
  if (!reads_again_ && (of_run || outside)) proven_.insert(slot.word());
  return of_run ? std::optional(item) : std::nullopt;
}

void IndexWalk::OnItemsDone() {
  if (unknown_) {
    step_ = Step::kUnknownSlot;
    return;
  }
  if (!reads_again_) return doubtful_ != kNoBucket ? Retry() : Advance();
  CutRun(doubtful_);
  if (run_ == 0) return Retry();
  PlanRead(index_, first_, phase_ == Phase::kHomes ? run_ + 1 : run_);
  again_ = true;
}

void IndexWalk::CutRun(uint32_t buckets) {
  const uint32_t left = phase_ == Phase::kStash ? buckets : std::max(buckets, 1u) - 1;
  changes_ = left < run_;
  run_ = std::min(run_, left);
}

// Keeps the copies of the first READ: they are those whose slots were looked at.
void IndexWalk::OnAgain(std::span<const std::byte> copy, int64_t now_ns) {
  again_ = false;
  const auto same = [&](uint32_t i) {
    return std::memcmp(&copy_[i], copy.data() + size_t{i} * kBucketBytes, kBucketBytes) == 0;
  };
  const auto buckets = static_cast<uint32_t>(copy.size() / kBucketBytes);
  uint32_t unchanged = 0;
  if (now_ns - run_posted_ns_ < kRunNsMax) {
    while (unchanged < buckets && same(unchanged)) ++unchanged;
  }
  const bool cut = changes_;
  CutRun(unchanged);
  changes_ |= cut;
  if (run_ == 0) return Retry();
  Advance();
}

void IndexWalk::Retry() {
  ++retries_;
  Plan();
}

// The homes or buckets of the run are done. Goes on with those behind it.
void IndexWalk::Advance() {
  ++advances_;
  proven_.clear();
  if (phase_ == Phase::kStash) {
    stash_at_ += run_;
    return Plan();
  }
  Range& range = ranges_.back();
  for (uint32_t i = 0; i < run_; ++i) {
    if (BucketMeta(copy_[i].meta).stash_tags() == 0) continue;
    const Range home = {std::max(range.begin, FirstHash(first_ + i, index_.homes)),
                        std::min(range.end, FirstHash(first_ + i + 1, index_.homes)),
                        range.generation_min};
    stashed_.push_back({home, index_, first_ + i, {copy_[i].checksum, copy_[i + 1].checksum}});
  }
  range.begin = FirstHash(first_ + run_, index_.homes);
  if (rounds_ == 0) reached_ = std::max(reached_, std::min(range.begin, range.end));
  if (range.begin >= range.end) ranges_.pop_back();
  Plan();
}

void IndexWalk::BeginStash() {
  phase_ = Phase::kStash;
  stashes_.clear();
  stash_at_ = 0;
  for (const Stashed& it : stashed_) {
    if (std::ranges::find(stashes_, it.index) == stashes_.end()) stashes_.push_back(it.index);
  }
  Plan();
}

void IndexWalk::PlanStash() {
  while (!stashes_.empty()) {
    const IndexGeometry& index = stashes_.back();
    const uint64_t buckets = index.stash_homes + 1;
    // If the index is gone, so are its homes. PlanConfirm finds that.
    if (stash_at_ < buckets && Has(index)) {
      const uint64_t most = changes_ ? 1 : kBucketsMax;
      return PlanRead(index, index.StashBucket(stash_at_),
                      static_cast<uint32_t>(std::min<uint64_t>(buckets - stash_at_, most)));
    }
    stashes_.pop_back();
    stash_at_ = 0;
  }
  phase_ = Phase::kConfirm;
  Plan();
}

// Each bucket counts by itself: slots do not move inside the stash.
void IndexWalk::OnStash() {
  run_ = 0;
  while (run_ < copy_.size() && Valid(run_)) ++run_;
  if (run_ == 0) return Retry();
  TakeSlots(run_);
}

void IndexWalk::PlanConfirm() {
  while (!stashed_.empty() && !Has(stashed_.back().index)) {
    ranges_.push_back(stashed_.back().range);
    stashed_.pop_back();
  }
  if (stashed_.empty()) return BeginRound();
  PlanRead(stashed_.back().index, stashed_.back().home, 2);
}

void IndexWalk::OnConfirm() {
  const Stashed& home = stashed_.back();
  const bool same = Valid(0) && Valid(1) && copy_[0].checksum == home.checksums[0] &&
                    copy_[1].checksum == home.checksums[1];
  if (!same) {
    ranges_.push_back(home.range);
    ++retries_;
  }
  stashed_.pop_back();
  ++advances_;
  Plan();
}

// Walks again through the homes that changed during the walk through the stash.
void IndexWalk::BeginRound() {
  phase_ = Phase::kHomes;
  if (ranges_.empty()) {
    step_ = Step::kDone;
  } else if (++rounds_ == kRoundsMax) {
    step_ = Step::kChangesTooFast;
  } else {
    Plan();
  }
}

}  // namespace gannet
