#include "common/lookup/lookup.h"

#include <algorithm>
#include <bit>

#include "common/layout/stub.h"

namespace gannet {
namespace {

// The buffers are 8-byte aligned and hold implicit-lifetime Buckets that the NIC filled in.
const Bucket* AsWindow(const std::byte* bytes) { return reinterpret_cast<const Bucket*>(bytes); }

}  // namespace

Lookup::Step Lookup::OnOtherRead(const Buffers& buffers, int64_t posted_ns,
                                 const ClientClock& clock) {
  switch (state_) {
    case State::kHome:
      return OnHomeWindow(buffers, posted_ns, clock);
    case State::kStash:
      return OnStashWindow(buffers, clock);
    case State::kConfirm:
      return OnConfirm(buffers, posted_ns, clock);
    case State::kHomeItem:
    case State::kStashItem:
      return OnItem(buffers, clock);
    case State::kLargeConfirm:
      return OnLargeConfirm(buffers);
    case State::kCached:  // handled in OnRead
    case State::kLargeValue:
      break;
  }
  return Step::kAskServer;
}

Lookup::Step Lookup::Retry() {
  if (++retries_ > kRetriesMax) return Step::kAskServer;
  return PlanWindow(home(), home_buffer_, State::kHome);
}

Lookup::Step Lookup::OnHomeWindow(const Buffers& buffers, int64_t posted_ns,
                                  const ClientClock& clock) {
  home_posted_ns_ = posted_ns;
  tag_matched_ = false;
  doubt_ = Doubt::kNone;
  const Bucket* const window = AsWindow(buffers.window[home_buffer_]);
  if (BucketMeta(window[0].meta).migrated()) [[unlikely]]
    return OnMigrated(window);
  candidates_ = MatchingSlotsOfWindow(window, hash_.Tag());
  state_ = State::kHomeItem;
  return NextCandidate(buffers, clock);
}

// The copies in the next index were published before the flag. So a READ of it that is posted now
// finds them, and may prove a miss. The slots here are out of date.
Lookup::Step Lookup::OnMigrated(const Bucket* window) {
  if (!Consistent(window)) return Retry();
  migrated_from_ = table().generation;
  if (table().generation == migrated_from_ + 1) {
    return PlanWindow(home(), home_buffer_, State::kHome);
  }
  next_index_unknown_ = true;
  return Step::kAskServer;
}

Lookup::Step Lookup::OnStashWindow(const Buffers& buffers, const ClientClock& clock) {
  stash_tag_matched_ = false;
  candidates_ = MatchingSlotsOfWindow(AsWindow(buffers.window[1 - home_buffer_]), hash_.Tag());
  state_ = State::kStashItem;
  return NextCandidate(buffers, clock);
}

Lookup::Step Lookup::OnItem(const Buffers& buffers, const ClientClock& clock) {
  switch (Prove(buffers)) {
    case ItemProof::kThisKey:
      return Found();
    case ItemProof::kOtherKey:
      (state_ == State::kStashItem ? stash_tag_matched_ : tag_matched_) = true;
      break;
    case ItemProof::kDead:
    case ItemProof::kTorn:
      doubt_ = std::max(doubt_, Doubt::kLooksAgain);
      break;
  }
  return NextCandidate(buffers, clock);
}

// READs the next slot that carries the tag, or concludes from a window that has no more.
Lookup::Step Lookup::NextCandidate(const Buffers& buffers, const ClientClock& clock) {
  const bool in_stash = state_ == State::kStashItem;
  const Bucket* window = AsWindow(buffers.window[in_stash ? 1 - home_buffer_ : home_buffer_]);
  while (candidates_ != 0) {
    const uint32_t i = static_cast<uint32_t>(std::countr_zero(candidates_));
    candidates_ &= candidates_ - 1;
    const Slot slot = SlotOfWindow(window, i);
    if (view_->Contains(slot.offset(), slot.read_bytes())) return PlanItem(slot, state_);
    // This client does not know the class or the place: only the server can tell.
    doubt_ = IsStub(slot) ? Doubt::kAsksServer : std::max(doubt_, Doubt::kLooksAgain);
  }
  if (doubt_ != Doubt::kNone) return doubt_ == Doubt::kAsksServer ? Step::kAskServer : Retry();
  return in_stash ? StashExhausted(window) : HomeExhausted(window, clock);
}

Lookup::Step Lookup::HomeExhausted(const Bucket* window, const ClientClock& clock) {
  if (!Consistent(window)) return Retry();
  if (MayBeInStash(window, hash_)) {
    return PlanWindow(stash_bucket(), 1 - home_buffer_, State::kStash);
  }
  if (tag_matched_) return PlanWindow(home(), 1 - home_buffer_, State::kConfirm);
  // No item was READ in between, so the clock still tells how long the window's READ took.
  if (clock.MonotonicNs() - home_posted_ns_ >= kMissReadNsMax) return Retry();
  return Step::kMiss;
}

Lookup::Step Lookup::StashExhausted(const Bucket* window) {
  if (!ChecksumsRight(window, *view_, table().generation, stash_bucket())) return Retry();
  // The slot may have been this key's when it was READ. If then the item was replaced and its block
  // went to the other key, nothing in the home window shows that.
  if (stash_tag_matched_) return Step::kAskServer;
  return PlanWindow(home(), 1 - home_buffer_, State::kConfirm);
}

// Judges the second READ of the home window. If it is identical, nothing happened to the window
// since the first.
Lookup::Step Lookup::OnConfirm(const Buffers& buffers, int64_t posted_ns,
                               const ClientClock& clock) {
  const bool same = SameWindow(AsWindow(buffers.window[0]), AsWindow(buffers.window[1]));
  const int64_t now_ns = clock.MonotonicNs();
  if (same && now_ns - posted_ns < kMissReadNsMax && now_ns - home_posted_ns_ < kConfirmNsMax) {
    return Step::kMiss;
  }
  if (++retries_ > kRetriesMax) return Step::kAskServer;
  home_buffer_ = 1 - home_buffer_;  // go on with the newer copy
  return OnHomeWindow(buffers, posted_ns, clock);
}

ItemProof Lookup::ProveLarge(const Buffers& buffers, const ItemPlace& place) {
  const std::span<const std::byte, kLargeHeadBytes> head(buffers.item, kLargeHeadBytes);
  const ItemProof proof = ProveLargeItem(head, place, key_, hash_, &large_);
  if (proof != ItemProof::kThisKey) return proof;
  // Our server never makes such an item. Otherwise the value's READ might leave the region.
  const bool fits = ItemBytes(key_.size(), large_.item.value_bytes) <= slot_.read_bytes();
  return fits ? ItemProof::kThisKey : ItemProof::kTorn;
}

// The first look at the commit word came before the value's READ was posted, and this one after its
// completion. If both are the same, nothing of the item was overwritten in between: a commit word
// is live only once.
Lookup::Step Lookup::OnLargeConfirm(const Buffers& buffers) {
  const auto commit = ItemField<uint64_t>(buffers.item, offsetof(ItemHeader, commit));
  return commit == large_.item.commit ? Step::kHit : Retry();
}

bool Lookup::Consistent(const Bucket* window) const {
  return ChecksumsRight(window, *view_, table().generation, home()) && PairCountersAgree(window);
}

}  // namespace gannet
