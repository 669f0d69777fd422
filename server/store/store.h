#ifndef GANNET_SERVER_STORE_STORE_H_
#define GANNET_SERVER_STORE_STORE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/layout/item_proof.h"
#include "common/layout/superblock.h"
#include "common/protocol/message.h"
#include "server/heap/heap.h"
#include "server/index/index.h"
#include "server/store/expiry_floors.h"

namespace gannet {

// What a write asks for beyond key and value.
struct WriteConditions {
  bool only_if_absent = false;
  // The version the writer read; 0 = absent.
  std::optional<uint64_t> only_if_version;
  // The exact lock word the writer holds; compared under the key's mutex.
  std::optional<uint64_t> under_lock;

  bool any() const { return only_if_absent || only_if_version || under_lock; }
};

struct ItemAttributes {
  uint32_t flags = 0;
  uint64_t expiry_ms = 0;  // since the Unix epoch; 0 = never
};

struct WriteOutcome {
  ReplyStatus status = ReplyStatus::kOk;
  uint64_t version = 0;    // of the item now (kVersionMismatch, kExists: of the one that is there)
  uint64_t slot = 0;       // Slot word of the item now; 0 = none
  uint64_t lock_word = 0;  // kLockLost: what the lock word is
};

struct ReadOutcome {
  ReplyStatus status = ReplyStatus::kOk;  // kOk, kNotFound, kBufferTooSmall
  uint64_t version = 0;
  uint64_t slot = 0;
  uint32_t value_bytes = 0;
  ItemAttributes attributes;
};

// The key-value store in one region of memory that clients READ: superblock, index and heap. All
// changes of a key go through here; the order of every store to the region follows
// docs/consistency.md.
//
// Invariants, for clients that READ at any time:
// 1. A key has at most one live commit word, and storing it (or storing a dead one) is the moment
//    at which the change happens.
// 2. A block is freed only after the slot that led to it, and its bucket's checksum, are published.
// 3. A refused write, a full heap or index included, changes nothing.
// 4. A write that replaces an item by one of the same size class or a smaller one is never refused
//    for want of room: with no other block, the new item is written over the old one.
//
// Thread safety: all methods may be called from any thread. The lock of a key's range of buckets is
// held from the load of its lock word to the end of the change, and keys of different ranges are
// worked on in parallel; readers (clients' READs) hold nothing.
class Store {
 public:
  struct Options {
    std::span<std::byte> region;           // page aligned, zero filled; outlives the Store
    std::span<const uint64_t> lock_words;  // changed by the NIC only; the Store loads them
    uint64_t index_slots = 0;              // 0 = by memory
    uint64_t incarnation = 0;              // random, not 0
    uint64_t hash_seed = 0;
    uint64_t first_version = 1;               // common/layout/version.h; not 0
    uint64_t page_bytes = Heap::PageBytes();  // that the heap must be aligned to
  };
  // InvalidArgument: the region is too small for the index, with what would do.
  static absl::StatusOr<std::unique_ptr<Store>> Create(const Options& options);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // A block of the heap that a value is being brought into, by the NIC or by the CPU, before any
  // client takes it for an item. Must be given to CommitPut or Abandon. Clients may still READ the
  // bytes through a stale location: who brings them by CPU uses StoreValue (item_writer.h).
  struct Reservation {
    uint64_t offset = 0;         // of the item from the region's base
    std::span<std::byte> value;  // where the value goes
    uint32_t size_class = 0;
  };

  // All with a key, `now_ms` and conditions: `now_ms` is the wall clock; an item past its expiry is
  // treated as absent, and removed. The lock is compared first, then kExists, then the version.

  // Copies the value when it fits `value_out`.
  ReadOutcome Get(std::string_view key, std::span<std::byte> value_out, uint64_t now_ms);
  // kInvalidArgument: key or value longer than the layout allows, or an empty key.
  WriteOutcome Put(std::string_view key, std::string_view value, ItemAttributes attributes,
                   const WriteConditions& conditions, uint64_t now_ms);
  // What most PUTs are: without conditions and expiry, of a key that is there with a value just as
  // long and no expiry, that fits its item and lies in its home bucket. In store_update.h, to be
  // compiled into the callers, in steps: with many updates to do, each step is done for all of
  // them, so that the memory which the next one needs is on its way meanwhile.
  //
  // Where the key's item probably is.
  struct Guess {
    uint64_t hash;
    uint64_t home;
    const std::byte* slot;  // in the home bucket
  };
  void GuessBucket(std::string_view key, Guess* guess) const;
  void GuessItem(Guess* guess) const;
  // False: nothing is done; Put. `flags()` are the item's; it is called once, when they are stored.
  // REQUIRES: the guess is of this key, by both steps.
  struct Update {
    uint64_t version = 0;
    uint64_t slot = 0;
  };
  template <class Flags>
  bool UpdateInPlace(const Guess& guess, std::string_view key, std::string_view value,
                     Flags&& flags, Update* update);
  WriteOutcome Delete(std::string_view key, const WriteConditions& conditions, uint64_t now_ms);

  // nullopt: the heap is full (or key or value are longer than the layout allows).
  std::optional<Reservation> Reserve(std::string_view key, uint32_t value_bytes, uint64_t now_ms);
  // For who got no reservation: whether the value fits the block of the key's item. If so, bring it
  // elsewhere and Put it, which writes over that block. If not, the write is refused, and counted.
  bool FitsOld(std::string_view key, uint32_t value_bytes, uint64_t now_ms);
  // Publishes the reserved item; whatever the outcome, the reservation is used up.
  // REQUIRES: `key` is that of Reserve, and nobody writes into the reservation any more.
  WriteOutcome CommitPut(const Reservation& reservation, std::string_view key,
                         ItemAttributes attributes, const WriteConditions& conditions,
                         uint64_t now_ms);
  // REQUIRES: nobody writes into the reservation any more.
  void Abandon(const Reservation& reservation);

  // Steps for a thread that has time (store_tidy.cc). A write that finds no room takes some, too.
  //
  // Does what there is to do, a bounded piece of it. Returns whether there is more at once.
  bool Tidy(uint64_t now_ms);
  // Removes the expired items of the next `homes` homes that have some, going round.
  struct Swept {
    size_t removed = 0;
    bool more = false;  // homes with expired items
  };
  Swept Sweep(uint64_t now_ms, size_t homes);
  // Moves items of the next `homes` homes to free blocks at lower addresses, so that what is free
  // comes together at higher ones. An item keeps its version when it moves. Returns how many moved.
  size_t Compact(size_t homes);

  const Superblock& superblock() const { return superblock_; }
  // Fills the counters of `stats` that the store keeps.
  void FillStats(StatsReply* stats) const;

 private:
  // A key's item, found under the key's lock; an empty slot and version 0: there is none.
  struct Current {
    bool there() const { return !slot.empty(); }
    Index::Place place{};
    Slot slot;
    uint64_t version = 0;
  };
  // New content in a block of its own, not live yet.
  struct Pending {
    uint64_t offset;
    uint32_t size_class;
    uint64_t version;
    uint64_t live_commit;
    uint64_t expiry_ms;
  };
  // What a step of compaction learns: below this address no block of the class is free.
  using Holes = std::array<const std::byte*, kSizeClassMax + 1>;
  // Nearly all homes have fewer keys.
  using FoundOfHome = std::array<Index::Found, 3 * kSlotsPerBucket>;

  Store(const Options& options, const Superblock& superblock, std::unique_ptr<Heap> heap);

  std::byte* Block(uint64_t offset) const { return region_.data() + offset; }
  ItemPlace PlaceOf(uint64_t offset) const {
    return {superblock_.incarnation, superblock_.hash_seed, offset};
  }
  ItemHeader LoadHeader(Slot slot) const;
  bool Expired(Slot slot, uint64_t now_ms) const { return Expired(Block(slot.offset()), now_ms); }
  static bool Expired(const std::byte* block, uint64_t now_ms);
  KeyHash HashOf(Slot slot) const;
  static bool IsKey(const std::byte* block, std::string_view key);
  // The live item of a key; removes it when it has expired. REQUIRES: the key's Index::Lock, as
  // all below that take a Current.
  Current FindCurrent(KeyHash hash, std::string_view key, uint64_t now_ms);
  // kOk, or why the write is refused, filled in.
  WriteOutcome Check(KeyHash hash, const Current& current, const WriteConditions& conditions) const;
  WriteOutcome PutShort(KeyHash hash, std::string_view key, std::string_view value,
                        ItemAttributes attributes, const Current& current, uint64_t now_ms);
  // Writes over the key's item. REQUIRES: the new one fits its block.
  WriteOutcome PutInPlace(KeyHash hash, std::string_view key, std::string_view value,
                          ItemAttributes attributes, const Current& current);
  // Without any lock held.
  WriteOutcome PutLong(std::string_view key, std::string_view value, ItemAttributes attributes,
                       const WriteConditions& conditions, uint64_t now_ms);
  WriteOutcome PutOverOld(std::string_view key, std::string_view value, ItemAttributes attributes,
                          const WriteConditions& conditions, uint64_t now_ms);
  // Makes pending content the key's item; frees what it replaces, or, with no room in the index,
  // the pending block.
  WriteOutcome Install(KeyHash hash, const Current& current, const Pending& pending,
                       uint64_t now_ms);
  void RemoveItem(const Index::Place& place, Slot slot);
  void FreeBlock(uint64_t offset, uint32_t size_class);

  // store_tidy.cc. Without any lock held: nullptr when there is no room even after a bounded search
  // for expired items and for items to move.
  std::byte* AllocateOrMakeRoom(uint32_t size_class, uint64_t now_ms);
  // REQUIRES: the lock of this home (of a home so near that its lock covers all that is touched).
  size_t RemoveExpired(uint64_t home, uint64_t now_ms);
  size_t RemoveExpiredNear(KeyHash hash, uint64_t now_ms);
  uint64_t FreedSinceRound() const;
  bool FragmentedWhenIdle() const;
  bool InCompactionRound() const;
  bool BeginCompactionRound();
  // How many moved; `*again`: call again for this home.
  size_t CompactHome(uint64_t home, Holes* holes, bool* again);
  // The bytes that were moved; 0: it stays.
  uint64_t MoveDown(const Index::Found& found, Holes* holes);
  bool MoveBelow(const Index::Found& found, const std::byte* end, uint32_t size_class,
                 Holes* holes);
  void Move(const Index::Found& found, std::byte* to, uint32_t size_class);
  uint64_t NextVersion() { return next_version_.fetch_add(1, std::memory_order_relaxed); }
  ItemHeader NewHeader(size_t key_bytes, size_t value_bytes, ItemAttributes attributes);

  // Immutable after Create.
  const std::span<std::byte> region_;
  const std::span<const uint64_t> lock_words_;
  const Superblock superblock_;
  const std::unique_ptr<Heap> heap_;

  Index index_;
  // Unique is all that a version must be: nobody compares two but for equality. Relaxed.
  std::atomic<uint64_t> next_version_;
  // All below are relaxed: positions from which to go on, hints, statistics.
  ExpiryFloors floors_;
  std::atomic<uint64_t> sweep_home_{0};
  std::atomic<uint64_t> compact_position_{0};  // homes looked at so far, round after round
  std::atomic<uint64_t> compact_until_{0};     // where this round ends
  std::atomic<uint64_t> freed_at_round_{0};    // bytes, before this round
  std::atomic<bool> compaction_wanted_{false};
  // By which the blocks of items were larger than needed, when these were written over longer ones.
  std::atomic<uint64_t> oversized_bytes_{0};
  std::atomic<uint64_t> items_expired_{0};
  std::atomic<uint64_t> items_moved_{0};
  std::atomic<uint64_t> refused_heap_full_{0};
  std::atomic<uint64_t> refused_index_full_{0};
};

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_STORE_H_
