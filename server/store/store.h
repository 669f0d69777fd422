#ifndef GANNET_SERVER_STORE_STORE_H_
#define GANNET_SERVER_STORE_STORE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/layout/item_proof.h"
#include "common/layout/superblock.h"
#include "common/protocol/message.h"
#include "server/heap/heap.h"
#include "server/index/index.h"
#include "server/recovery/recovery_area.h"
#include "server/store/compactor.h"
#include "server/store/evictor.h"
#include "server/store/pending.h"
#include "server/store/recorder.h"
#include "server/store/reservation.h"
#include "server/store/store_options.h"
#include "server/store/taken_over.h"
#include "server/store/write_outcome.h"

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
//      unless the region is a file. If there is no other block, it overwrites the old item.
//   5. A large item's block holds nothing but its value, from the moment when it is live until its
//      commit word is dead.
//   6. To evict an item is to delete it, by the same steps and under the same lock. An item whose
//      key's lock word is held is not evicted.
//
// Thread safety: all methods, from any thread. A change holds the lock of its key's range of
// buckets, from the load of its lock word to its end. Readers (clients' READs) hold no lock.
class Store {
 public:
  using Options = StoreOptions;
  // InvalidArgument: the region is too small for the index; the text says which size would do. And
  // the errors of Adopter.
  static absl::StatusOr<std::unique_ptr<Store>> Create(const Options& options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  using Reservation = gannet::Reservation;

  // In all methods with a key, `now_ms` is the wall clock. An item past its expiry counts as
  // absent, and is removed. Conditions are checked in this order: the lock, kExists, the version.

  // Copies the value to `value_out` if it fits.
  ReadOutcome Get(std::string_view key, std::span<std::byte> value_out, uint64_t now_ms);
  // kInvalidArgument: the key is empty, or key or value are longer than the layout allows.
  WriteOutcome Put(std::string_view key, std::string_view value, ItemAttributes attributes,
                   const WriteConditions& conditions, uint64_t now_ms);
  // The fast path of a PUT, for the most frequent kind: it has no conditions and no expiry, and
  // replaces a value of the same length without expiry, in an item that fits kInPlaceBytesMax and
  // lies in its home bucket. It has three steps, inlined into the caller from store_update.h:
  // GuessBucket, GuessItem, UpdateInPlace. With many updates, do each step for all of them, so that
  // the memory for the next step is prefetched meanwhile.
  //
  // A guess at the place of the key's item.
  struct Guess {
    uint64_t hash;
    const std::byte* place;  // of the home bucket, then of the slot in it
  };
  void GuessBucket(std::string_view key, Guess* guess) const;
  void GuessItem(Guess* guess) const;
  // Returns false if nothing was done; then call Put. `flags()` returns the item's flags, and is
  // called once. REQUIRES: both steps of the guess were made for this key; `origin` if records().
  struct Update {
    uint64_t version = 0;
    uint64_t slot = 0;
  };
  template <class Flags>
  bool UpdateInPlace(const Guess& guess, std::string_view key, std::string_view value,
                     Flags&& flags, Update* update, const ChangeOrigin* origin = nullptr);
  WriteOutcome Delete(std::string_view key, const WriteConditions& conditions, uint64_t now_ms);

  // The next four make new content from the old one, under the key's lock (store_modify.cc). An
  // item that is there keeps its flags and expiry. If there is none, Append and Increment make one
  // with the attributes `made`.
  //
  // Adds a piece to the end of the value, or to its beginning. kTooLong: the new value would be
  // longer than kAppendedBytesMax. kTryAgain: a long value changed too often meanwhile.
  enum class End : uint8_t { kFront, kBack };
  WriteOutcome Append(std::string_view key, std::string_view piece, End end, ItemAttributes made,
                      const WriteConditions& conditions, uint64_t now_ms);
  // Adds `delta` to a value that is a decimal number of 64 bits, as ParseCounter takes it. If there
  // is no item, counts from `initial`. kNotANumber, kOutOfRange.
  WriteOutcome Increment(std::string_view key, const CounterOperands& operands, ItemAttributes made,
                         const WriteConditions& conditions, uint64_t now_ms);
  // Gives the item another expiry (0 = never), and with it a new version.
  WriteOutcome Touch(std::string_view key, uint64_t expiry_ms, const WriteConditions& conditions,
                     uint64_t now_ms);
  // Removes the items of some homes, in the order of their keys' hashes from `position` on.
  using Flushed = FlushOutcome;
  Flushed FlushSome(uint64_t position);

  // Returns nullopt if the heap is full, or if key or value are longer than the layout allows.
  std::optional<Reservation> Reserve(std::string_view key, uint32_t value_bytes, uint64_t now_ms);
  // Call it if Reserve failed. Returns true if the value fits the block of the key's item: then
  // bring the value elsewhere and Put it, which overwrites that block. Returns false if the write
  // is refused, and counts that.
  bool FitsOld(std::string_view key, uint32_t value_bytes, uint64_t now_ms);
  // Publishes the reserved item. The reservation is used up, whatever the outcome. REQUIRES: `key`
  // is that of Reserve, and nobody writes into the reservation any more.
  WriteOutcome CommitPut(const Reservation& reservation, std::string_view key,
                         ItemAttributes attributes, const WriteConditions& conditions,
                         uint64_t now_ms);
  // REQUIRES: nobody writes into the reservation any more.
  void Abandon(const Reservation& reservation);

  // The next four are steps for a thread that has time (store_tidy.cc). A write that finds no room
  // does some of them, too.
  //
  // Does a bounded piece of the work that there is to do. Returns whether there is more to do at
  // once. REQUIRES: one thread at a time calls it.
  bool Tidy(uint64_t now_ms);
  // Takes note that no client READs an index older than this generation any more. Their memory is
  // freed by the next Tidy. A store that was never told frees it at once.
  void Acknowledge(uint64_t generation) {
    acknowledged_.store(generation, std::memory_order_relaxed);
  }
  // Returns whether the index is being replaced now. Then Tidy should be called again very soon.
  bool growing() const { return grow_phase_.load(std::memory_order_relaxed) != GrowPhase::kRest; }
  // Removes the expired items of the next `homes` homes that have some, in a circle over all homes.
  Swept Sweep(uint64_t now_ms, size_t homes);
  // Moves items of the next `homes` homes together. Returns how many moved.
  size_t Compact(size_t homes) { return compactor_.Compact(homes); }

  // Returns whether the store evicts. If not, the next method does nothing.
  bool evicts() const { return evictor_ != nullptr; }
  // Notes what a client READ. `touches` are its bytes, unchecked (common/protocol/touch.h).
  void NoteTouches(std::string_view touches) {
    if (evicts()) evictor_->state().TouchAll(touches, region_.size());
  }
  // Counts an UpdateInPlace of the key as a use. REQUIRES: the store evicts.
  void NoteUpdate(const Guess& guess, std::string_view key);
  // Returns whether the store evicts and is nearly full, so that Tidy should be called often.
  bool NearlyFull() const;

  // Sets the clock that `now_ms` was read from, so that the store can read it again. Otherwise
  // `now_ms` is the time. Call it before other threads use the store.
  void UseClock(std::function<uint64_t()> clock) { clock_ = std::move(clock); }
  // Returns the time now. An operation that began after somebody saw this clock show a time must
  // not be decided by an earlier one.
  uint64_t NowMs(uint64_t now_ms) const { return clock_ ? std::max(now_ms, clock_()) : now_ms; }

  // What Create found in a memory file.
  const std::optional<TakenOver>& taken_over() const { return taken_over_; }
  // `sink` hears of every change before anybody can see it. An expiry is no change. Call it before
  // other threads use the store, as Restore.
  void UseSink(ChangeSink* sink) { recorder_ = Recorder(sink); }
  bool records() const { return recorder_.on(); }
  // Makes a recorded change again, with its version (store_record.cc).
  ReplyStatus Restore(const Change& change, uint64_t now_ms);
  // Gives no version below this any more. Call it after the last Restore.
  void BeginVersions(uint64_t first) { next_version_.store(first, std::memory_order_relaxed); }
  // Gives the items of one home to `visit`, under their lock. Returns the position to go on from,
  // as FlushSome does; or nullopt if the index grows now, and this must be tried again later.
  std::optional<uint64_t> VisitHome(uint64_t position,
                                    const std::function<void(const Change&)>& visit);

  // As it is now. The fields that tell of the index change when the index grows.
  Superblock superblock() const;
  uint64_t index_generation() const { return index_generation_.load(std::memory_order_acquire); }
  // For those who watch. FillStats fills the counters of `stats` that the store keeps.
  const Heap& heap() const { return *heap_; }
  void FillStats(StatsReply* stats) const;

 private:
  friend class Adopter;
  friend class Compactor;
  friend class Evictor;
  friend class WaitingWrites;

  // A key's item, found under the key's lock. If there is none, the slot is empty and the version
  // is 0.
  struct Current {
    bool there() const { return !slot.empty(); }
    Index::Place place{};
    Slot slot;
    uint64_t version = 0;
  };
  // Large enough for nearly all homes.
  using FoundOfHome = std::array<Index::Found, 3 * kSlotsPerBucket>;

  enum class GrowPhase : uint8_t { kRest, kPreparing, kMigrating };

  Store(const Options& options, const Superblock& superblock, std::unique_ptr<Heap> heap,
        const Survey* survey = nullptr);
  // Marks an item dead that `by` replaces at once. Then call Replaced.
  void StoreReplaced(KeyHash hash, Slot old, Slot by);
  void Replaced(KeyHash hash) {
    if (recovery_ != nullptr) recovery_->End(hash);
  }

  std::byte* Block(uint64_t offset) const { return region_.data() + offset; }
  ItemPlace PlaceAt(uint64_t offset) const {
    return {superblock_.incarnation, superblock_.hash_seed, offset};
  }
  ItemHeader LoadHeader(Slot slot) const;
  bool Expired(const std::byte* block, uint64_t now_ms) const;
  KeyHash KeyHashAt(Slot slot) const;
  static bool IsKey(const std::byte* block, std::string_view key);
  // Returns the live item of a key. Removes it if it has expired. REQUIRES: the key's Index::Lock,
  // as do all methods below that take a Current.
  Current FindCurrent(KeyHash hash, std::string_view key, uint64_t now_ms);
  // Returns kOk, or a complete outcome that says why the write is refused.
  WriteOutcome Check(KeyHash hash, const Current& current, const WriteConditions& conditions) const;
  WriteOutcome PutShort(KeyHash hash, std::string_view key, std::string_view value,
                        ItemAttributes attributes, const ChangeOrigin* origin,
                        const Current& current, uint64_t now_ms);
  // PutShort, for callers of other sources.
  WriteOutcome PutChanged(KeyHash hash, std::string_view key, std::string_view value,
                          ItemAttributes attributes, const ChangeOrigin* origin,
                          const Current& current, uint64_t now_ms);
  // Overwrites the key's item. REQUIRES: the new one fits its block.
  WriteOutcome PutInPlace(KeyHash hash, std::string_view key, std::string_view value,
                          ItemAttributes attributes, const ChangeOrigin* origin,
                          const Current& current);
  // REQUIRES: no lock is held.
  WriteOutcome PutLong(std::string_view key, std::string_view value, ItemAttributes attributes,
                       const WriteConditions& conditions, uint64_t now_ms);
  WriteOutcome PutOverOld(std::string_view key, std::string_view value, ItemAttributes attributes,
                          const WriteConditions& conditions, uint64_t now_ms);
  WriteOutcome PutOverLarge(KeyHash hash, std::string_view key, std::string_view value,
                            ItemAttributes attributes, const ChangeOrigin* origin,
                            const Current& current);
  bool MayOverwrite(const Current& current, uint64_t item_bytes) const;
  // Completes a reserved item, which takes long for a long value. REQUIRES: no lock is held.
  Pending Prepare(const Reservation& reservation, KeyHash hash, std::string_view key,
                  ItemAttributes attributes);
  // Makes pending content the key's item, and frees the old block. If the index has no room, frees
  // the pending block instead.
  WriteOutcome Install(KeyHash hash, const Current& current, const Pending& pending,
                       const ChangeOrigin* origin, uint64_t now_ms);
  // Returns false if the sink refuses. REQUIRES: the key's Lock.
  bool RecordDelete(Slot slot, const ChangeOrigin* origin) {
    return !records() || recorder_.Delete(Block(slot.offset()), NextVersion(), origin);
  }
  // Removes a slot that Install inserted.
  void TakeBack(KeyHash hash, Slot slot);
  // Writes what make(old value, or nullopt; Pieces*) says (store_modify.cc). REQUIRES: no lock is
  // held.
  template <class Make>
  WriteOutcome Modify(std::string_view key, ItemAttributes made, const WriteConditions& conditions,
                      uint64_t now_ms, Make make);
  // Adds what it removed to `flushed`. Returns false if `table` is not the newest any more.
  bool RemoveAll(IndexTable& table, uint64_t home, Flushed* flushed);
  void RemoveItem(const Index::Place& place, Slot slot);
  void FreeBlock(uint64_t offset, uint32_t size_class);

  // store_tidy.cc. Returns nullptr if there is no room, even after a bounded search for expired
  // items and for items to move. REQUIRES: no lock is held.
  std::byte* AllocateOrMakeRoom(uint64_t item_bytes, uint64_t now_ms);
  // REQUIRES: the lock of this home, or of a home so near that its lock covers all that is touched.
  size_t RemoveExpired(IndexTable& table, uint64_t home, uint64_t now_ms);
  size_t RemoveExpiredNear(KeyHash hash, uint64_t now_ms);
  // Inserts a slot after it removed expired items near by, or evicted some.
  bool InsertAfterRemoval(KeyHash hash, Slot slot, uint64_t now_ms);

  // store_grow.cc. Does a step of the growth, or begins it. Returns whether there is more to do at
  // once.
  bool Grow();
  bool BeginGrowth() GANNET_REQUIRES(grow_mutex_);
  // Returns the bytes of the next index, or 0 if the present one will do.
  uint64_t NextIndexBytes();
  bool AllocateNextIndex(uint64_t bytes) GANNET_REQUIRES(grow_mutex_);
  void PublishIndex(const IndexGeometry& index, const IndexGeometry& next);
  void FreeRetired() GANNET_REQUIRES(grow_mutex_);
  void WatchFill();
  void PrepareIndex(uint64_t buckets) GANNET_REQUIRES(grow_mutex_);
  void MigrateHomes(uint64_t homes) GANNET_REQUIRES(grow_mutex_);
  GANNET_UNCHECKED_LOCKS void HelpGrowing();
  void MakeSlots();
  // Returns kTryAgain if the index has no slot for a key, but soon will. Otherwise counts and
  // returns kIndexFull.
  ReplyStatus NoSlot();
  ReplyStatus RefuseForSlot();
  void AskForGrowth();

  uint64_t NextVersion() { return next_version_.fetch_add(1, std::memory_order_relaxed); }
  ItemHeader NewHeader(size_t key_bytes, size_t value_bytes, ItemAttributes attributes);

  // Immutable after Create.
  const std::unique_ptr<Evictor> evictor_;  // nullptr: the store does not evict
  const std::span<std::byte> region_;
  const std::span<const uint64_t> lock_words_;
  const Superblock superblock_;  // of the start: the fields of the index are out of date
  const std::unique_ptr<Heap> heap_;
  std::function<uint64_t()> clock_;
  Recorder recorder_;
  const bool index_grows_;
  const std::function<void()> wants_tidy_;
  const std::unique_ptr<RecoveryArea> recovery_;  // nullptr: the region ends with the process
  std::optional<TakenOver> taken_over_;

  Index index_;
  Compactor compactor_{*this};
  // Relaxed: versions must only be unique, since they are compared only for equality.
  std::atomic<uint64_t> next_version_;
  // All fields below are relaxed: they are positions to go on from, hints, and statistics.
  std::atomic<uint64_t> sweep_home_{0};
  std::atomic<uint64_t> items_expired_{0};
  std::atomic<uint64_t> items_deleted_{0};
  std::atomic<uint64_t> refused_heap_full_{0};
  std::atomic<uint64_t> refused_index_full_{0};
  std::atomic<uint64_t> index_growths_{0};

  // Growth. With so many slots in use, a write asks for it.
  std::atomic<uint64_t> grow_at_{UINT64_MAX};
  std::atomic<bool> growth_wanted_{false};  // by a write
  std::atomic<bool> no_slot_{false};        // for a write, since the last growth
  std::atomic<bool> no_room_to_grow_{false};
  std::atomic<uint64_t> table_wanted_bytes_{0};  // for the next index, which finds no room; or 0
  std::atomic<GrowPhase> grow_phase_{GrowPhase::kRest};
  std::atomic<uint64_t> acknowledged_{UINT64_MAX};
  // Release after the superblock is published; acquire, so that a later grant is not older.
  std::atomic<uint64_t> index_generation_;
  mutable Mutex grow_mutex_;  // one thread at a time grows the index
  std::vector<IndexGeometry> retired_ GANNET_GUARDED_BY(grow_mutex_);
  IndexGeometry next_ GANNET_GUARDED_BY(grow_mutex_){};
  mutable Mutex published_mutex_;
  IndexGeometry published_index_ GANNET_GUARDED_BY(published_mutex_);
  IndexGeometry published_next_ GANNET_GUARDED_BY(published_mutex_){};
};

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_STORE_H_
