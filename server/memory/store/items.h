#ifndef GANNET_SERVER_MEMORY_STORE_ITEMS_H_
#define GANNET_SERVER_MEMORY_STORE_ITEMS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "common/base/words.h"
#include "common/layout/item_proof.h"
#include "common/layout/lock_word_table.h"
#include "common/layout/stub.h"
#include "common/layout/superblock.h"
#include "server/memory/heap/heap.h"
#include "server/memory/index/index.h"
#include "server/memory/recovery/recovery_area.h"
#include "server/memory/recovery/survey.h"
#include "server/memory/store/eviction.h"
#include "server/memory/store/item_leases.h"
#include "server/memory/store/store_options.h"

namespace gannet {

class Stubs;

// What a store is made of: the items in the blocks of a heap, the index that leads to them, and the
// steps by which an item goes. Store makes and removes items as clients ask for; Compactor moves
// them, Evictor chooses some to remove, and Adopter takes over those of a former process.
//
// Thread safety: as the index's: hold a lock of an item's key to look at it or change it.
class Items : public IndexedItems {
 public:
  // Large enough for nearly all homes.
  using FoundOfHome = std::array<Index::Found, 3 * kSlotsPerBucket>;

  // `survey`: what a former process left in the region; nullptr: it is empty.
  Items(const StoreOptions& options, const Superblock& superblock, std::unique_ptr<Heap> heap,
        const Survey* survey);
  ~Items();
  Items(const Items&) = delete;
  Items& operator=(const Items&) = delete;

  std::span<std::byte> region() const { return region_; }
  // Returns the superblock as it was at the start. Its fields about the index are out of date.
  const Superblock& first_superblock() const { return superblock_; }
  Heap& heap() { return *heap_; }
  Index& index() { return index_; }
  // nullptr: the region ends with the process.
  RecoveryArea* recovery() const { return recovery_.get(); }
  // Which items are used. nullptr: the store does not evict.
  Eviction* eviction() const { return eviction_.get(); }
  // Which items are leased to clients. nullptr: none.
  ItemLeases* leases() const { return leases_; }

  // The items whose values are on a disk. nullptr: the store has no tier.
  Stubs* stubs() const { return stubs_.get(); }

  std::byte* Block(uint64_t offset) const { return region_.data() + offset; }
  ItemPlace PlaceAt(uint64_t offset) const {
    return {superblock_.incarnation, superblock_.hash_seed, offset};
  }
  ItemHeader LoadHeader(Slot slot) const;
  KeyHash KeyHashAt(Slot slot) const final;
  // Returns the key of the item that lies at an offset, whatever that is, as far as its bytes say.
  // Empty: there is none. Look it up, under its lock, before you believe it.
  using KeyCopy = std::array<char, kKeyBytesMax + 2 * sizeof(uint64_t)>;
  std::string_view GuessKeyAt(uint64_t offset, KeyCopy* copy) const;

  // Makes an item live that is in another block, in place of one of the same key. Then free the old
  // block. Inline in store_find.h.
  void ReplaceItem(const Index::Lock& held, KeyHash hash, const Index::Place& place, Slot old,
                   Slot by, uint64_t live_commit);
  void RemoveItem(const Index::Lock& held, const Index::Place& place, Slot slot);
  // `size_class` is that of the block.
  void FreeBlock(uint64_t offset, uint32_t size_class);
  // Frees the block of an item that has gone. REQUIRES: its bytes are still there.
  void FreeItem(Slot slot);
  // Counts a stub that has come to this slot. Nobody uses it, but it is there.
  void NoteStub(Slot slot);
  // The class of the block that a slot leads to.
  uint32_t BlockClassOf(Slot slot) const {
    return IsStub(slot) ? BlockClass(slot, LoadHeader(slot).key_bytes()) : slot.size_class();
  }

  // Where the lock words are.
  LockWordTable& lock_words() { return lock_words_; }

  // Whoever changes an item asks this first. Returns how many ms a change of the key has to wait
  // for the end of a lease, which it ends; 0: it may be made now. `now` may be a little early.
  uint64_t EndLease(const Index::Lock& /*held*/, KeyHash hash, ServerTime now) {
    if (leases_ == nullptr || !leases_->MayHave(hash)) [[likely]]
      return 0;
    return leases_->Change(hash, now);
  }
  // Returns whether a put may go over an item with no other look: nobody hears of changes, and no
  // item is leased.
  bool updates_at_once() const { return updates_at_once_; }

  // Returns a version that no item had. Relaxed: versions must only be unique, and grow with each
  // change of a key. Whoever changes a key takes one under the key's lock, or compares there.
  uint64_t NextVersion() { return next_version_.fetch_add(1, std::memory_order_relaxed); }
  // Gives no version below this any more. Relaxed: as above.
  void RaiseVersions(uint64_t first) {
    uint64_t next = next_version();
    while (next < first &&
           !next_version_.compare_exchange_weak(next, first, std::memory_order_relaxed)) {
    }
  }
  uint64_t next_version() const { return next_version_.load(std::memory_order_relaxed); }
  // Returns a version that is not below that of any item that was removed. REQUIRES: a lock of the
  // key that is asked for; then it counts for that key.
  uint64_t removed_version() const { return removed_version_.load(std::memory_order_relaxed); }
  void NoteRemoved(uint64_t version);

  // Counts items that expire: one's expiry changes. An item that is not there never expires.
  void CountExpiring(Expiry before, Expiry after) {
    const bool was = !before.never();
    const bool is = !after.never();
    if (was == is) return;
    if (is) {
      expiring_.fetch_add(1, std::memory_order_relaxed);
    } else {
      expiring_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  void CountExpiring(uint64_t items) { expiring_.fetch_add(items, std::memory_order_relaxed); }
  uint64_t expiring() const { return expiring_.load(std::memory_order_relaxed); }

 protected:
  // Immutable after the constructor, but for where the lock words are.
  const std::span<std::byte> region_;
  const Superblock superblock_;
  LockWordTable lock_words_;
  const std::unique_ptr<Heap> heap_;
  const std::unique_ptr<RecoveryArea> recovery_;
  const std::unique_ptr<Eviction> eviction_;
  ItemLeases* const leases_;
  const std::unique_ptr<Stubs> stubs_;
  bool updates_at_once_ = leases_ == nullptr;

  Index index_;
  std::atomic<uint64_t> next_version_;
  std::atomic<uint64_t> removed_version_{0};  // the highest of an item that was removed
  std::atomic<uint64_t> expiring_{0};         // items that have an expiry
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_ITEMS_H_
