#ifndef GANNET_SERVER_MEMORY_STORE_STORE_H_
#define GANNET_SERVER_MEMORY_STORE_STORE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/base/server_time.h"
#include "common/layout/superblock.h"
#include "common/protocol/message.h"
#include "server/log/changes/change_sink.h"
#include "server/memory/heap/heap.h"
#include "server/memory/index/index.h"
#include "server/memory/recovery/recovery_area.h"
#include "server/memory/store/compactor.h"
#include "server/memory/store/evictor.h"
#include "server/memory/store/index_grower.h"
#include "server/memory/store/item_update.h"
#include "server/memory/store/items.h"
#include "server/memory/store/pending.h"
#include "server/memory/store/reservation.h"
#include "server/memory/store/store_options.h"
#include "server/memory/store/taken_over.h"
#include "server/memory/store/write_outcome.h"

namespace gannet {

// The key-value store in one region of memory that clients READ: superblock, index and heap. All
// changes of a key go through this class. The order of every store to the region follows
// docs/consistency.md.
//
// Invariants, for clients that READ at any time:
//   1. A key has at most one live commit word. A change happens at the moment when a commit word is
//      stored, live or dead.
//   2. A block is freed only after its slot has changed and the bucket's checksum is published.
//   3. A refused write changes nothing, even if heap or index are full.
//   4. A write that replaces an item by one that is not longer is never refused for lack of room,
//      unless the region is a file, or the item's value is on a disk. If there is no other block,
//      it overwrites the old item.
//   5. A large item's block holds nothing but its value, from the moment when it is live until its
//      commit word is dead.
//   6. To evict an item is to delete it, by the same steps and under the same lock, or to replace
//      it by a stub, if its value is on a disk. An item whose key's lock word is held is not
//      evicted.
// Thread safety: all methods, from any thread. A change holds the lock of its key's range of
// buckets, from the load of its lock word to its end. Readers (clients' READs) hold no lock.
class Store final : private Items {
 public:
  using Options = StoreOptions;
  // InvalidArgument: the region is too small for the index; the text says which size would do. And
  // the errors of Adopter.
  static absl::StatusOr<std::unique_ptr<Store>> Create(const Options& options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  using Reservation = gannet::Reservation;
  // In all methods with a key, `now` is by the server's clock. An item past its expiry counts as
  // absent, and is removed.
  KeyHash HashOf(std::string_view key) const { return KeyHash::Of(key, superblock_.hash_seed); }
  // Copies the value to `value_out` if it fits. If it is on the disk, says where.
  ReadOutcome Get(std::string_view key, std::span<std::byte> value_out, ServerTime now);

  // A key's item. If there is none, the slot is empty and the version is 0.
  struct Current {
    bool there() const { return !slot.empty(); }
    Index::Place place{};
    Slot slot;
    uint64_t version = 0;
  };
  // A key that nobody else changes while this lives, and its item. Changes are made through it by
  // the methods below. A thread holds at most one (store_find.h).
  class Locked;

  // Make a change, whose version is the item's. The sink, if there
  // is one, hears of it before anybody can see it. kDiskRefuses: the sink refused it, so nothing
  // happened. The outcome's version and slot are those of the new item.
  // Puts a short value, where the old one is or into a block that is free. kHeapFull: none is free.
  // kTryAgain, kIndexFull: there is no slot. REQUIRES: the item has at most kInPlaceBytesMax.
  WriteOutcome PutShort(const Locked& key, const Change& put);
  // Makes pending content the key's item, and frees the old block. If it fails, frees the pending
  // block, unless `put` is nullptr: then the change was recorded before, and its block is kept.
  WriteOutcome Install(const Locked& key, const Pending& pending, const Change* put);
  // Overwrites the key's item, if the new one fits its block. kHeapFull: it does not.
  WriteOutcome Overwrite(const Locked& key, const Change& put);
  // Changes only version and expiry. REQUIRES: there is an item, and `put` has its value.
  WriteOutcome Touch(const Locked& key, const Change& put);
  // REQUIRES: there is an item.
  WriteOutcome Remove(const Locked& key, const Change& deletion);
  // Makes a deletion of this version that was recorded before. There may be no item.
  void RemoveRecorded(const Locked& key, uint64_t version);

  // Makes a change that was recorded elsewhere, with its own version. An item that has expired is
  // not made. Otherwise as above. kTryAgain, kIndexFull: let the index grow.
  ReplyStatus Apply(const Change& change, ServerTime now);
  // Does the same as Apply with a put. kExists: the key has an item, and nothing was done.
  ReplyStatus ApplyIfAbsent(const Change& put, ServerTime now);

  // Returns the item at a slot as the change that made it. The value of a stub is what the stub
  // says. REQUIRES: it stays as it is meanwhile.
  Change ItemAt(Slot slot) const;
  using Items::lock_words;
  // Evictions ask EndLease. Whoever makes another change does so before he decides, but for the
  // fast path of PUTs, below.
  using Items::EndLease, Items::leases, Items::stubs, Items::updates_at_once;
  using Items::NextVersion, Items::RaiseVersions, Items::removed_version;

  // The fast path of a PUT, for the most frequent kind: it has no conditions and no expiry, and
  // replaces a value of the same length without expiry, in an item that fits kInPlaceBytesMax and
  // lies in its home bucket. It has three steps, inlined into the caller from store_update.h:
  // GuessBucket, GuessItem, UpdateInPlace. With many updates, do each step for all of them, so that
  // the memory for the next step is prefetched meanwhile.
  //
  // If the store leases items, drop the guess (Drop) behind GuessItem if the key may be leased or
  // announced (ItemLeases::MayHave): nobody looks again under the key's lock. So before a key that
  // was announced is leased, all fast paths are over that looked before.
  // A guess at the place of the key's item.
  struct Guess {
    // The fast path does nothing.
    void Drop() { place = nullptr; }
    uint64_t hash;
    const std::byte* place;  // of the home bucket, then of the slot in it
  };
  void GuessBucket(std::string_view key, Guess* guess) const;
  void GuessItem(Guess* guess) const;
  struct Update {
    uint64_t version = 0;
    uint64_t slot = 0;
  };
  // Returns false if nothing was done; then put it otherwise. `flags()` returns the item's flags,
  // and is called once. REQUIRES: both steps of the guess were made for this key; not records().
  template <class Flags>
  bool UpdateInPlace(const Guess& guess, std::string_view key, std::string_view value,
                     Flags&& flags, Update* update);
  // The same for many, of a store that records() (recorded_updates.h).
  class RecordedUpdates;
  // The same for one that waits: returns decide(slot), called under the key's lock, or false.
  // False, too, if the lock is not free, and it may not wait for that.
  template <class Decide>
  bool DecideUpdate(const Guess& guess, std::string_view key, size_t value_bytes,
                    Index::KeyTry::May may, Decide&& decide);
  // Makes it, when its record is safe. REQUIRES: nothing changed the key since.
  void MakeUpdate(const Locked& key, const ItemUpdate& update);
  // By its guess; calls decode() and made() under the key's lock. Returns false if it was moved.
  template <class Decode, class Made>
  bool MakeUpdate(const Guess& guess, Decode&& decode, Made&& made);
  // Makes one that was recorded elsewhere, or returns false. The sink hears of it by `change`; if
  // that is null, PassUpdates follows. REQUIRES: a change, or nobody Hears.
  bool ApplyUpdate(const Guess& guess, const ItemUpdate& update, const Change* change);
  bool Hears() const { return sink_ != nullptr && sink_->Hears(); }  // somebody, of changes
  void PassUpdates(uint64_t bytes) {
    if (sink_ != nullptr) sink_->Pass(bytes);
  }
  // Returns nullopt if the heap is full, or if key or value are longer than the layout allows. The
  // second one brings the value, too.
  std::optional<Reservation> Reserve(std::string_view key, uint32_t value_bytes, ServerTime now);
  std::optional<Reservation> Reserve(std::string_view key, std::string_view value, ServerTime now);
  // Completes a reserved item, which takes long for a long value. May be done again, for another
  // version. REQUIRES: no lock is held, or that of the key; nobody writes into the reservation.
  Pending Prepare(const Reservation& reservation, KeyHash hash, const Change& put);
  // Makes a short item in a block of its own, or one of any length, for which room may be made: no
  // lock is held. Returns nullopt if no block is free.
  std::optional<Pending> Make(KeyHash hash, const Change& put);
  std::optional<Pending> MakeLong(KeyHash hash, const Change& put, ServerTime now);
  // Give a block back. REQUIRES: nobody writes into the reservation any more.
  void Drop(const Pending& pending) { FreeBlock(pending.offset, pending.size_class); }
  void Abandon(const Reservation& reservation);
  // Returns true if a value of this length fits the block of the key's item.
  bool FitsOld(std::string_view key, uint32_t value_bytes, ServerTime now);
  // For a write that finds no slot and must not be overtaken. REQUIRES: no lock.
  void MakeSlots() { grower_.MakeSlots(); }
  // Count a write that is refused, or a deletion. If Reserve failed: NoRoom. It returns kTryAgain,
  // and counts nothing, if the store evicts, and the item fits once all others have gone.
  ReplyStatus NoRoom(std::string_view key, size_t value_bytes);
  ReplyStatus RefuseForSlot();
  void CountDeleted() { items_deleted_.fetch_add(1, std::memory_order_relaxed); }

  // The next four are steps for a thread that has time, or a write without room.
  // Does a bounded piece of work. Returns whether more is left. REQUIRES: one thread at a time.
  bool Tidy(ServerTime now);
  // Takes note that no client READs an index older than this generation any more. Their memory is
  // freed by the next Tidy. A store that was never told frees it at once.
  void Acknowledge(uint64_t generation) { grower_.Acknowledge(generation); }
  // Returns whether the index is being replaced now. Then Tidy should be called again very soon.
  bool growing() const { return grower_.growing(); }
  // Removes the expired items of the next `homes` homes that have some, in a circle over all homes.
  Swept Sweep(ServerTime now, size_t homes);
  // Moves items of the next `homes` homes together. Returns how many moved.
  size_t Compact(size_t homes) { return compactor_.Compact(homes); }

  // Returns whether the store evicts. If not, the next method does nothing.
  bool evicts() const { return eviction_ != nullptr; }
  // Lets nothing be evicted, or again. A backup evicts only what its primary does.
  void PauseEvictions(bool paused);
  // Notes what a client READ. `touches` are its bytes, unchecked (common/protocol/touch.h). Each
  // use in it stands for `each` READs.
  void NoteTouches(std::string_view touches, uint32_t each);
  // Counts an UpdateInPlace of the key as a use. REQUIRES: the store evicts.
  void NoteUpdate(const Guess& guess, std::string_view key);
  // Returns whether the store evicts and is nearly full, so that Tidy should be called often.
  bool NearlyFull() const;
  // From now on the store counts as full when 97 % of its memory is in use. For the primary of a
  // group: its backups' memory is in other pieces, and must have room for all that it takes.
  void KeepRoom() { heap_->KeepFree(heap_->capacity_bytes() * 3 / 100); }

  // Sets the clock that `now` was read from, to read it again. Before others use the store, which
  // it outlives.
  void UseClock(const ServerTimeSource* clock) { clock_ = clock; }
  // Returns the time now. An operation that began after somebody saw this clock show a time must
  // not be decided by an earlier one.
  ServerTime Now(ServerTime now) const {
    return clock_ == nullptr ? now : std::max(now, clock_->Time());
  }

  // What Create found in a memory file.
  const std::optional<TakenOver>& taken_over() const { return taken_over_; }
  // `sink` hears of every change before anybody can see it; not of expiries. Before others use it.
  void UseSink(ChangeSink* sink) {
    GANNET_CHECK(sink == nullptr || stubs_ == nullptr, "no sink hears of values on a disk");
    sink_ = sink;
    updates_at_once_ = sink == nullptr && leases_ == nullptr;
  }
  bool records() const { return sink_ != nullptr; }
  // Lets evictions wait; nullptr: they happen at once. While nobody uses the store.
  void EvictLater(LaterEvictions* later);
  // Gives no version below this any more. Call it after the last Apply.
  void BeginVersions(uint64_t first) { next_version_.store(first, std::memory_order_relaxed); }

  // Walks over all items, home by home, in the order of their keys' hashes. Begin
  // at position 0. Both return the position to go on from, which is 0 behind the last home.
  // Gives the items of one home to `visit`, under their lock. Returns nullopt if the index grows
  // now, and this must be tried again later.
  std::optional<uint64_t> VisitHome(uint64_t position,
                                    absl::FunctionRef<void(const Change&)> visit);
  // Appends the keys of one home. Moves its keys into the new index, if the index grows.
  uint64_t ListKeys(uint64_t position, std::vector<std::string>* keys);

  // As it is now. The fields that tell of the index change when the index grows.
  Superblock superblock() const { return grower_.superblock(); }
  uint64_t index_generation() const { return grower_.generation(); }
  // For those who watch. FillStats fills the counters of `stats` that the store keeps.
  const Heap& heap() const { return *heap_; }
  void FillStats(StatsReply* stats) const;

 private:
  // Returns whether the guessed item is the key's, and takes a value of this length in place.
  template <class Lock>
  bool FindToUpdate(const Lock& lock, const Guess& guess, std::string_view key,
                    uint32_t value_bytes, Slot* slot) const;
  Store(const Options& options, const Superblock& superblock, std::unique_ptr<Heap> heap,
        const Survey* survey = nullptr);
  // Makes a store of what a former process left (adopter.h).
  static absl::StatusOr<std::unique_ptr<Store>> TakeOver(const Options& options);

  bool Expired(const std::byte* block, ServerTime now) const;
  static bool IsKey(const std::byte* block, std::string_view key);
  // Returns the live item of the key whose lock is held. Removes it if it has expired.
  Current FindCurrent(const Index::Lock& held, KeyHash hash, std::string_view key, ServerTime now);
  // Writes an item over the key's. `slot` leads to it, at the same place.
  WriteOutcome PutInPlace(const Locked& key, const Change& put, Slot slot);
  void NoteExpiry(const Locked& key, const ItemHeader& header);
  bool MayOverwrite(const Current& current, uint64_t item_bytes) const;
  // Returns false if the sink refuses. REQUIRES: the key's lock.
  bool Record(const Change& change) { return !records() || sink_->Record(change); }
  // Returns the deletion of the item at a slot, which nobody asked for.
  Change DeletionOf(Slot slot);
  // Removes a slot that Install inserted.
  void TakeBack(const Index::Lock& held, KeyHash hash, Slot slot);
  ReplyStatus ApplyPut(const Change& put, ServerTime now, bool over_item);
  // Writes an update over the item at a slot. REQUIRES: the key's lock.
  void WriteUpdate(KeyHash hash, Slot slot, const ItemUpdate& update);
  // Returns false if `table` is not the newest any more.
  bool ListKeysOf(IndexTable& table, uint64_t home, std::vector<std::string>* keys);
  friend class Evictor;      // calls Evict
  friend class TierEvictor;  // the same
  friend class SpanClearer;  // the same
  friend class ItemLeaser;   // begins leases
  // Deletes an item that the evictor chose, now or later. Returns false if its key is locked or has
  // waiting changes, or the sink refuses. `held` is the lock of the item's home.
  bool Evict(const Index::Lock& held, const Index::Found& found);
  // Returns nullptr if bounded work makes no room. REQUIRES: no lock is held.
  std::byte* AllocateOrMakeRoom(uint64_t item_bytes, ServerTime now);
  // `held` is the lock of this home, or of a home so near that its lock covers all that is touched.
  size_t RemoveExpired(const Index::Lock& held, IndexTable& table, uint64_t home, ServerTime now);
  size_t RemoveExpiredNear(const Index::Lock& held, KeyHash hash, ServerTime now);
  // Removes expired items near by, or evicts some, and inserts a slot. kTryAgain: one waits to go.
  ReplyStatus InsertAfterRemoval(const Index::Lock& held, KeyHash hash, Slot slot, ServerTime now);
  // Returns kTryAgain if the store evicts or its index grows. Otherwise counts a kIndexFull.
  ReplyStatus NoSlot();
  // Immutable after Create.
  const ServerTimeSource* clock_ = nullptr;
  ChangeSink* sink_ = nullptr;
  LaterEvictions* later_ = nullptr;
  std::optional<TakenOver> taken_over_;

  Compactor compactor_{*this};
  IndexGrower grower_;
  const std::unique_ptr<Evictor> evictor_;  // nullptr: the store does not evict
  // All fields below are relaxed: they are positions to go on from, hints, and statistics.
  std::atomic<uint64_t> sweep_home_{0};
  std::atomic<uint64_t> items_expired_{0};
  std::atomic<uint64_t> items_deleted_{0};
  std::atomic<uint64_t> refused_heap_full_{0};
  std::atomic<uint64_t> refused_index_full_{0};
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_STORE_H_
