#ifndef GANNET_COMMON_LOOKUP_INDEX_WALK_H_
#define GANNET_COMMON_LOOKUP_INDEX_WALK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "common/base/clock.h"
#include "common/layout/bucket.h"
#include "common/layout/item.h"
#include "common/layout/slot.h"
#include "common/lookup/index_view.h"
#include "common/lookup/lookup.h"

namespace gannet {

// Which items a walk looks at, by where in the region they begin.
class WantedItems {
 public:
  virtual bool IsWanted(uint64_t offset) const = 0;

 protected:
  ~WantedItems() = default;
};

// A walk through an index as a state machine over copied bytes. It says what to READ next, and is
// given what was READ. It knows nothing of verbs.
//
//   homes: READ a run of buckets -> READ the items of their slots -> the next run
//   stash: the same for the buckets of the stash, if a home has keys there
//   confirm: READ again each home that had keys in the stash
//
// Invariants:
//   1. An item is shown only if it proves itself, under the hash of its own key.
//   2. A home is done only if one READ brought both buckets of its window with right checksums and
//      equal pair counters (rule W1), and after that each of its slots led to a live item whose key
//      fits the slot. Otherwise the run is READ again. So a key that was in the window when it was
//      sampled was found, or another key of the same tag and home had its block by then.
//   3. A key may go to the stash before its home is READ, and come back before the stash is. So a
//      home with stash tags is done only if it is the same after the stash was walked through: each
//      move of a key between window and stash changes both buckets of the window. Otherwise the
//      home is walked through again, and then the stash.
//   4. Positions are hashes. If a home is migrated, its range of hashes is walked through in the
//      next index. So a walk goes on while the index grows.
//   5. Windows::kReadAgain closes the gap of 2: buckets are done only if a second READ, after their
//      items, finds them unchanged. Then every key that was there all the time is found. That READ
//      also finds all that invariant 2 finds by the time that the first READ took. So READs may be
//      slow: only the time for both is bounded, by kRunNsMax.
//
// docs/consistency.md names the rules. One owner thread.
class IndexWalk {
 public:
  static constexpr uint32_t kBucketsMax =
      17;  // of one READ: sixteen homes, and the last one's next
  static constexpr uint32_t kRoundsMax = 100;
  // A bucket's version has 24 bits, so 2^24 changes between its two READs would go unseen. They
  // take longer than this.
  static constexpr int64_t kRunNsMax = 4 * kNsPerSecond;
  // Of the blocks of a run that is READ again, if it has more than one home. Then a run does not
  // take so long that its buckets always change meanwhile.
  static constexpr uint64_t kRunBytesMax = 8 << 20;

  // Whether buckets are READ again after their items. It costs one READ for each sixteen homes.
  enum class Windows : uint8_t { kReadOnce, kReadAgain };

  enum class Step : uint8_t {
    kReadBuckets,  // READ buckets(), then call OnBuckets
    kReadItems,    // READ each of items() and call OnItem, then OnItemsDone
    kWantIndex,    // a home was migrated to an index that the view does not have; then call Resume
    kDone,
    kChangesTooFast,  // the stash changed in each of kRoundsMax rounds
    kUnknownSlot,     // a newer server has a kind of slot that this walk does not know
  };
  struct Read {
    uint64_t offset;
    uint32_t bytes;
  };
  // An item that proved itself. Key and value point into the copy. The value of a large item is
  // empty, and so is that of a stub, whose header says how long the value on the disk is.
  struct Item {
    ItemHeader header;
    std::string_view key;
    std::string_view value;
  };

  // `view` may change at any time, and must outlive the walk. `wanted` says which items are
  // looked at, and outlives it, too; null: all are. The invariants hold for these items. The walk
  // covers keys whose hash is `begin` or higher.
  explicit IndexWalk(const IndexView* view, const WantedItems* wanted = nullptr, uint64_t begin = 0,
                     Windows windows = Windows::kReadOnce);

  Step step() const { return step_; }
  Read buckets() const { return read_; }
  // `posted_ns`: the time when the READ was posted, or an earlier one.
  void OnBuckets(std::span<const std::byte> copy, int64_t posted_ns, int64_t now_ns);
  // The slots whose items are to be READ. Each leads to a block within the region.
  const std::vector<Slot>& items() const { return items_; }
  uint32_t ReadBytesOf(Slot slot) const;
  // Returns the item if it is to be shown. `i` is its place in items().
  std::optional<Item> OnItem(size_t i, std::span<const std::byte> copy);
  // Takes note that a large item which OnItem returned has changed since. `i` as there.
  void OnItemLost(size_t i) { Doubt(item_buckets_[i]); }
  void OnItemsDone();
  // Returns whether buckets() begins a run. Then no READ of an index is under way that is older
  // than those that the view had when the last run began.
  bool begins_run() const { return step_ == Step::kReadBuckets && !again_; }
  void Resume() { Plan(); }
  // Ends the walk early: leaves out the homes that it has not reached. Returns the hash at which
  // they begin, so that a walk that begins there goes on. Returns 0, and leaves out nothing, if no
  // home is left, or if this walk has advanced by less than `hashes_min`. REQUIRES: step() is
  // kReadBuckets.
  uint64_t CutOff(uint64_t hashes_min);

  uint64_t retries() const { return retries_; }
  // Grows whenever the walk advances.
  uint64_t advances() const { return advances_; }
  // The share of the homes that the walk has covered.
  double done() const;

 private:
  using Position = unsigned __int128;  // a hash, or 2^64
  static constexpr Position kEnd = Position{1} << 64;
  static constexpr uint32_t kNoBucket = UINT32_MAX;
  enum class Phase : uint8_t { kHomes, kStash, kConfirm };
  struct Range {
    Position begin;
    Position end;
    uint64_t generation_min;  // of the index to look into
  };
  // A home that may have keys in the stash, as the walk READ it.
  struct Stashed {
    Range range;
    IndexGeometry index;
    uint64_t home;
    uint64_t checksums[2];
  };

  static Position FirstHash(uint64_t home, uint64_t homes);
  const IndexGeometry* IndexFrom(uint64_t generation_min) const;
  bool Has(const IndexGeometry& index) const {
    return index == view_->index || index == view_->next;
  }
  void Plan();
  void PlanHomes();
  void PlanStash();
  void PlanConfirm();
  void PlanRead(const IndexGeometry& index, uint64_t first, uint32_t buckets);
  bool Valid(uint32_t i) const;
  void OnHomes(bool in_time);
  void OnMigrated();
  void OnStash();
  void OnConfirm();
  void TakeSlots(uint32_t buckets);
  void Doubt(uint32_t bucket) { doubtful_ = std::min(doubtful_, bucket); }
  // Leaves out of the run what needs more than its first `buckets` buckets.
  void CutRun(uint32_t buckets);
  void OnAgain(std::span<const std::byte> copy, int64_t now_ns);
  void Retry();
  void Advance();
  bool Fits(uint32_t bucket, Slot slot, KeyHash hash) const;
  void BeginStash();
  void BeginRound();

  const IndexView* const view_;
  const uint64_t begin_;
  const WantedItems* const wanted_;
  const bool reads_again_;
  Step step_ = Step::kDone;
  Phase phase_ = Phase::kHomes;
  std::vector<Range> ranges_;           // still to be walked through; the last one comes next
  std::vector<IndexGeometry> stashes_;  // the same, of this round
  uint64_t stash_at_ = 0;
  std::vector<Stashed> stashed_;  // of this round
  uint32_t rounds_ = 0;

  // The run that is being READ.
  IndexGeometry index_{};
  uint64_t first_ = 0;  // bucket
  Read read_{};
  uint32_t run_ = 0;  // homes, or buckets of the stash, whose copies are consistent
  std::vector<Bucket> copy_;
  std::vector<Slot> items_;
  std::vector<uint32_t> item_buckets_;  // the bucket of the run, for each of items_
  uint32_t doubtful_ = kNoBucket;       // the first bucket with an item that did not prove itself
  bool again_ = false;                  // the second READ of the run is planned
  bool changes_ = false;  // the run's first home changed meanwhile: the next run has no other one
  int64_t run_posted_ns_ = 0;
  bool unknown_ = false;                 // the run has a stub of a kind that is not known
  std::unordered_set<uint64_t> proven_;  // slots of the run that need not be looked at again
  uint64_t retries_ = 0;
  uint64_t advances_ = 0;
  Position reached_ = 0;  // in the first round
};

}  // namespace gannet

#endif  // GANNET_COMMON_LOOKUP_INDEX_WALK_H_
