#ifndef GANNET_COMMON_LOOKUP_LOOKUP_H_
#define GANNET_COMMON_LOOKUP_LOOKUP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/base/client_clock.h"
#include "common/layout/item_proof.h"
#include "common/layout/large_proof.h"
#include "common/layout/slot.h"
#include "common/lookup/index_view.h"
#include "common/lookup/window.h"

namespace gannet {

// One GET as a state machine over copied bytes. It says what to READ next and into which buffer, is
// told when that READ is done, and ends in a hit, a believed miss, or "ask the server". A hit may
// be past its expiry; the caller judges that. Knows nothing of verbs.
//
//        cached location                    home window               stash window
//   READ item ---- other/dead/torn ---> READ ---> items ---> READ ---> items ---> READ home again
//      | this key                        |          | this key  |        |           | identical
//      v                                 v miss     v hit       v hit    v hit       v miss
//     hit                              (W1 holds, no tag matched, no stash tag)
//
// If the item is large, "this key" is not a hit yet. The item READ was only its head, and two more
// steps follow: kReadValue, on which the caller READs the value to wherever it wants it and calls
// OnValue; and a READ of the commit word. If that is still the same, it is a hit.
//
// Invariants:
//   1. A hit is believed by the item's own proof alone. A large item's value was READ after its
//      commit word, and before that was READ again and found the same.
//   2. If an item is dead, torn or unreadable, or anything is wrong with a window, that is never a
//      miss: the home window is READ again, at most kRetriesMax times, and then the server is
//      asked. It is asked at once if the window has a stub with the key's tag and no item of the
//      key: only the server can read what the stub says.
//   3. A miss needs rule W1: both checksums are right, the pair counters are equal, and the READ
//      took less than kMissReadNsMax. If a tag matched, or the stash was looked into, it also needs
//      rule W3: a second READ of the home window is identical to the first, versions included. If a
//      tag matched in the stash, no miss is believed, and the server is asked.
//   4. No READ leaves the region.
//   5. If the home is migrated, only the next index says where the key is. It is READ after the
//      flag was seen, and then 1 to 3 hold there.
//
// See docs/consistency.md. One owner thread. The buffers belong to the caller, who must keep what
// was READ into them until the lookup ends.
class Lookup {
 public:
  static constexpr uint32_t kRetriesMax = 16;
  // The pair counters have 16 bits, so 65,536 moves within one READ would go unseen.
  static constexpr int64_t kMissReadNsMax = kNsPerMs;
  // The version has 24 bits, so 2^24 changes between a window and its second READ would go unseen.
  static constexpr int64_t kConfirmNsMax = 100 * kNsPerMs;

  enum class Step : uint8_t { kRead, kReadValue, kHit, kMiss, kAskServer };
  // The one of the caller's three buffers that the READ goes to.
  enum class Target : uint8_t { kWindow0 = 0, kWindow1 = 1, kItem = 2 };

  // What to READ, after Step::kRead.
  struct ReadPlan {
    uint64_t offset;
    uint32_t bytes;
    Target target;
  };
  // The caller's buffers: two windows of kWindowBytes, 8-byte aligned, and the bytes of the last
  // item.
  struct Buffers {
    const std::byte* window[2];
    const std::byte* item;
  };

  // Begins a lookup. `key` and `view` must stay valid until it ends. `cached` is empty if no
  // location is known.
  Step Start(const IndexView* view, std::string_view key, KeyHash hash, Slot cached) {
    view_ = view;
    key_ = key;
    hash_ = hash;
    retries_ = 0;
    home_buffer_ = 0;
    migrated_from_ = 0;
    next_index_unknown_ = false;
    if (!cached.empty() && view->Contains(cached.offset(), cached.read_bytes())) {
      return PlanItem(cached, State::kCached);
    }
    return PlanWindow(home(), home_buffer_, State::kHome);
  }
  // Begins a lookup of a large item that was found before: at `slot`, with this head. Returns
  // kReadValue.
  Step StartKnown(const IndexView* view, std::string_view key, KeyHash hash, Slot slot,
                  const LargeItemHeader& head) {
    Start(view, key, hash, {});
    slot_ = slot;
    large_ = head;
    return PlanValue(/*cached=*/true);
  }
  // Takes note that the planned READ is done, and returns the next step. `posted_ns` is when it was
  // posted, or an earlier time. Reads the clock only if a miss depends on it.
  Step OnRead(const Buffers& buffers, int64_t posted_ns, const ClientClock& clock) {
    if (state_ != State::kCached) return OnOtherRead(buffers, posted_ns, clock);
    if (Prove(buffers) == ItemProof::kThisKey) [[likely]]
      return Found();
    return PlanWindow(home(), home_buffer_, State::kHome);
  }
  // Takes note that all of the value that is wanted was READ, after Step::kReadValue. Returns
  // kRead.
  Step OnValue() {
    state_ = State::kLargeConfirm;
    plan_ = {slot_.offset(), sizeof(ItemHeader::commit), Target::kItem};
    return Step::kRead;
  }

  // For a caller who wants no value: leaves out of the planned READ of a large item's head what
  // lies behind a key as long as this one. If the item has a longer key, its head then proves
  // nothing and the window is READ again; from then on heads are READ whole.
  void ShortenHead() {
    static_assert(kLargeHeadBytes % kItemAlignment != 0, "no item is READ whole by such a READ");
    if (plan_.target == Target::kItem && plan_.bytes == kLargeHeadBytes && retries_ == 0) {
      plan_.bytes = static_cast<uint32_t>(sizeof(LargeItemHeader) + key_.size());
    }
  }

  const ReadPlan& plan() const { return plan_; }
  // After kHit: the item's header, key and value. Key and value point into the item buffer; those
  // of a large item are empty.
  const ItemView& item() const { return item_; }
  Slot slot() const { return slot_; }
  // After kReadValue, and kHit of a large item: its head, and where its value is in the region. The
  // value is within the item's block.
  const LargeItemHeader& large() const { return large_; }
  uint64_t value_offset() const { return slot_.offset() + LargeValueOffset(key_.size()); }
  bool reads_value() const { return state_ == State::kLargeValue; }
  // Returns whether the last place looked at was the cached location.
  bool from_cached() const {
    const bool large = state_ == State::kLargeValue || state_ == State::kLargeConfirm;
    return state_ == State::kCached || (large && large_cached_);
  }
  // After kAskServer: the key's home was migrated to an index that the view does not have.
  bool next_index_unknown() const { return next_index_unknown_; }

 private:
  enum class State : uint8_t {
    kCached,
    kHome,
    kHomeItem,
    kStash,
    kStashItem,
    kConfirm,
    kLargeValue,
    kLargeConfirm,
  };

  Step PlanItem(Slot slot, State state) {
    slot_ = slot;
    state_ = state;
    const bool large = IsLargeClass(slot.size_class());
    plan_ = {slot.offset(), large ? kLargeHeadBytes : static_cast<uint32_t>(slot.read_bytes()),
             Target::kItem};
    return Step::kRead;
  }
  // The item READ is this key's.
  Step Found() {
    return IsLargeClass(slot_.size_class()) ? PlanValue(state_ == State::kCached) : Step::kHit;
  }
  Step PlanValue(bool cached) {
    item_ = {.header = large_.item, .key = {}, .value = {}};
    large_cached_ = cached;
    state_ = State::kLargeValue;
    return Step::kReadValue;
  }
  Step PlanWindow(uint64_t first_bucket, uint8_t buffer, State state) {
    state_ = state;
    plan_ = {table().BucketOffset(first_bucket), kWindowBytes, static_cast<Target>(buffer)};
    return Step::kRead;
  }
  Step OnOtherRead(const Buffers& buffers, int64_t posted_ns, const ClientClock& clock);
  Step Retry();
  Step OnHomeWindow(const Buffers& buffers, int64_t posted_ns, const ClientClock& clock);
  Step OnMigrated(const Bucket* window);
  Step OnStashWindow(const Buffers& buffers, const ClientClock& clock);
  Step OnConfirm(const Buffers& buffers, int64_t posted_ns, const ClientClock& clock);
  Step OnItem(const Buffers& buffers, const ClientClock& clock);
  Step NextCandidate(const Buffers& buffers, const ClientClock& clock);
  Step HomeExhausted(const Bucket* window, const ClientClock& clock);
  Step StashExhausted(const Bucket* window);
  ItemProof Prove(const Buffers& buffers) {
    const ItemPlace place = {view_->incarnation, view_->hash_seed, slot_.offset()};
    if (IsLargeClass(slot_.size_class())) [[unlikely]]
      return ProveLarge(buffers, place);
    return ProveItem({buffers.item, plan_.bytes}, place, key_, hash_, &item_);
  }
  ItemProof ProveLarge(const Buffers& buffers, const ItemPlace& place);
  Step OnLargeConfirm(const Buffers& buffers);
  bool Consistent(const Bucket* window) const;
  uint64_t home() const { return hash_.Home(table().homes); }
  uint64_t stash_bucket() const {
    return table().StashBucket(hash_.StashHome(table().stash_homes));
  }
  // The index whose windows this lookup READs now. The view may change meanwhile.
  const IndexGeometry& table() const {
    const bool in_next = migrated_from_ == view_->index.generation && view_->next.homes != 0;
    return in_next ? view_->next : view_->index;
  }

  const IndexView* view_ = nullptr;
  std::string_view key_;
  KeyHash hash_{0};
  ReadPlan plan_{};
  Slot slot_;                // of the item that is being READ or was found
  ItemView item_{};          // valid after kHit
  LargeItemHeader large_{};  // of the large item found last
  // The generation of the index in which the key's home is known to be migrated; 0 = in none.
  uint64_t migrated_from_ = 0;
  int64_t home_posted_ns_ = 0;  // when the home window's READ was posted
  uint32_t candidates_ = 0;     // slots of the window being looked through, not yet READ
  uint32_t retries_ = 0;
  State state_ = State::kHome;
  uint8_t home_buffer_ = 0;         // which window buffer holds the home window
  bool tag_matched_ = false;        // in this round
  bool stash_tag_matched_ = false;  // in this round
  bool large_cached_ = false;       // the large item was at the cached location
  bool next_index_unknown_ = false;
  // Whether an item was dead, torn or unreadable in this round, or a stub that may be the key's.
  enum class Doubt : uint8_t { kNone, kLooksAgain, kAsksServer };
  Doubt doubt_ = Doubt::kNone;
};

}  // namespace gannet

#endif  // GANNET_COMMON_LOOKUP_LOOKUP_H_
