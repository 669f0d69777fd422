#ifndef GANNET_SERVER_WRITES_WRITES_H_
#define GANNET_SERVER_WRITES_WRITES_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/base/data_path_checks.h"
#include "common/base/mutex.h"
#include "common/base/server_time.h"
#include "common/base/word_mutex.h"
#include "common/protocol/message.h"
#include "common/protocol/partition_map.h"
#include "server/memory/store/store.h"
#include "server/memory/store/store_find.h"
#include "server/memory/store/write_outcome.h"
#include "server/writes/new_value.h"
#include "server/writes/waiting_changes.h"

namespace gannet {

// The writes that clients ask for. Each is decided under its key's lock, against the newest state
// of the key: its last waiting change, or if none waits, its item in the store. What was decided is
// published at once, in the same call. Or, after WaitFor, it is recorded, and waits until somebody
// says that its record is safe:
//
//   decided = writes.Put(...);                  // a worker: conditions, version, record
//   writes.Publish(changes.safe());             // any worker, before it answers
//   if (writes.published() >= decided.ticket)   // the worker: answers
//
// Invariants, for writes that wait:
//   1. A write is published when its record is safe, and answered when it is published. Writes are
//      published in the order in which they were recorded.
//   2. An answer that tells of a waiting write waits for that one.
//   3. A waiting write has its own block. The item that it replaces does not change meanwhile. So a
//      replacement needs room for both, as with a memory file.
//   4. An eviction waits as any other deletion. A key with a waiting change is not evicted, so an
//      eviction is the first waiting change of its key. A write that needs its room comes again.
//   5. If the index has no slot for a waiting write, the write and all that were decided behind it
//      are undone: a deletion is recorded, and when that is safe, they are refused.
//   6. If a write counts on an item that expires before the write is published, it is undone in the
//      same way, with all that were decided behind it. Their clients send them again.
// For all:
//   7. The versions of a key grow with its changes.
//
// A state machine: it starts no thread and waits for nothing. Thread safety: all methods but
// WaitFor, from any thread.
class Writes {
 public:
  // `store` outlives it. Nobody else changes what clients see of the store, but by UpdateInPlace if
  // writes do not wait.
  explicit Writes(Store* store);
  ~Writes();
  Writes(const Writes&) = delete;
  Writes& operator=(const Writes&) = delete;

  // From now on, writes wait until their places in `recorder` are safe. It outlives the object.
  // Call this before other threads use the object.
  void WaitFor(ChangeRecorder* recorder);
  bool waits() const { return waiting_ != nullptr; }

  struct Decided {
    WriteOutcome outcome;
    // The answer may be given when published() has come to this; 0 = at once. Unless TakeUndone
    // says something else then.
    uint64_t ticket = 0;
  };

  // The verbs. `now` is by the server's clock. Conditions are checked in this order:
  // the lock, kExists, the version. kDiskRefuses: the change could not be recorded.
  // kTryAgain with wait_ms: the item is leased to clients, and the write ends the lease.
  //
  // kInvalidArgument: the key is empty, or key or value are longer than the layout allows.
  Decided Put(std::string_view key, std::string_view value, ItemAttributes attributes,
              const WriteConditions& conditions, ServerTime now);
  // The fast path of puts that wait, for updates: puts without conditions and expiry of keys whose
  // items can be updated in place. Call BeginUpdates, UpdateInLane for each, and EndUpdates, with
  // no other call in between, and without a lock. BeginUpdates returns false if none is taken now:
  // then Put them. UpdateInLane returns false, without a side effect, if it would have to wait for
  // a lock, or it finds no more memory, or the put is no update. Then EndUpdates, and Update it,
  // which takes the lock before it begins. If that returns false, Put it. `flags()` returns the
  // item's flags, and is called once. REQUIRES: waits(); as for Store::UpdateInPlace. Defined in
  // update.h.
  struct UpdateOrigin {
    uint64_t session_token;
    uint64_t sequence;
  };
  struct UpdateDecided {
    uint64_t version;
    uint64_t slot;
    uint64_t ticket;  // as that of Decided
  };
  bool BeginUpdates() { return waiting_->BeginUpdates(); }
  void EndUpdates() { waiting_->EndUpdates(); }
  template <class Flags>
  bool UpdateInLane(const Store::Guess& guess, std::string_view key, std::string_view value,
                    Flags&& flags, const UpdateOrigin& origin, UpdateDecided* decided);
  template <class Flags>
  bool Update(const Store::Guess& guess, std::string_view key, std::string_view value,
              Flags&& flags, const UpdateOrigin& origin, UpdateDecided* decided);
  // Puts the item of Store::Reserve. The reservation is used up, whatever the outcome. REQUIRES:
  // `key` is that of Reserve, and nobody writes into the reservation any more.
  Decided CommitPut(const Reservation& reservation, std::string_view key, ItemAttributes attributes,
                    const WriteConditions& conditions, ServerTime now);
  // Call it if Store::Reserve failed. Returns true if the value may overwrite that of the key: then
  // bring it elsewhere and Put it. Otherwise Store::NoRoom is the answer.
  bool MayOverwrite(std::string_view key, uint32_t value_bytes, ServerTime now);
  Decided Delete(std::string_view key, const WriteConditions& conditions, ServerTime now);

  // The next three make new content from the old one. An item that is there keeps its flags and
  // expiry. If there is none, Append and Increment make one with the attributes `made`. These two
  // need the old value: if that is on the disk, they answer kUnimplemented with needs_value.
  //
  // Adds a piece to the end of the value, or to its beginning. kTooLong: the new value would be
  // longer than kAppendedBytesMax. kTryAgain: a long value changed too often meanwhile.
  enum class End : uint8_t { kFront, kBack };
  Decided Append(std::string_view key, std::string_view piece, End end, ItemAttributes made,
                 const WriteConditions& conditions, ServerTime now);
  // Adds `delta` to a value that is a decimal number of 64 bits, as ParseCounter takes it. If there
  // is no item, counts from `initial`. kNotANumber, kOutOfRange. The new number is in `number`.
  Decided Increment(std::string_view key, const CounterOperands& operands, ItemAttributes made,
                    const WriteConditions& conditions, ServerTime now);
  // Gives the item another expiry, and with it a new version.
  Decided Touch(std::string_view key, Expiry expiry, const WriteConditions& conditions,
                ServerTime now);

  // Makes a change that another group's primary decided, with its version, flags and expiry
  // (docs/partitions.md). A change that has expired deletes. All versions that are given
  // afterwards are higher.
  //   kExists: the key has an item of this version or of a higher one, or, for an item that was
  //     found by a walk, any item. Nothing was done, as with kNotFound: nothing is to be deleted.
  //   kHeapFull, kTryAgain: there is no room, or no slot, now.
  enum class Brings : uint8_t { kChange, kWalkedItem };
  Decided Bring(const Change& change, Brings brings, ServerTime now);
  // Gives only versions above this one from now on, and records that, so that whoever goes on with
  // the stream does, too. A deletion is the record, of some key that has no item.
  Decided RecordVersion(uint64_t version, ServerTime now);

  // Deletes the items of some homes, in the order of their keys' hashes from `position` on. It is
  // no moment: other writes may come between its deletions.
  struct Flushed {
    uint64_t next = 0;  // the position to go on from; 0 = all homes were looked at
    uint64_t removed = 0;
    bool refused = false;  // by the disk; some homes were not looked at
    uint32_t wait_ms = 0;  // an item is leased to clients; some homes were not looked at
    uint64_t ticket = 0;   // as that of Decided
  };
  Flushed FlushSome(uint64_t position, ServerTime now);
  // The same of at most `homes` homes, and of keys of these partitions only; nullptr: of all.
  // Leases on items of such partitions are forgotten. REQUIRES: nobody is served these partitions
  // here, and no client goes by leases of before.
  Flushed FlushSome(uint64_t position, uint64_t homes, const std::bitset<kPartitions>* partitions,
                    ServerTime now);

  // Waiting writes (publish.cc). If writes do not wait, there are none.
  //
  // Publishes what is recorded below `safe`. Returns when that is published, by whomever.
  void Publish(uint64_t safe);
  // What waits will never be safe, as far as anybody knows. So it is never answered. Writes are
  // refused from now on.
  void Fail();
  uint64_t published() const { return waits() ? waiting_->published() : 0; }
  uint64_t published_position() const { return waits() ? waiting_->published_position() : 0; }
  // Returns nullopt if the write of this ticket was not undone. Ask once for each ticket, when
  // published() has come to it.
  std::optional<WaitingChanges::Undone> TakeUndone(uint64_t ticket) {
    return waits() ? waiting_->TakeUndone(ticket) : std::nullopt;
  }
  // Records the answer to a request that was refused with this ticket, unless TakeUndone will say
  // something else. Call it before the session's next request is decided. REQUIRES: waits().
  void RecordAnswer(uint64_t ticket, const SessionRecord& answer) {
    GANNET_CHECK_DATA_PATH(waits(), "writes do not wait");
    waiting_->RecordAnswer(ticket, answer);
  }
  uint64_t given() const { return waits() ? waiting_->given() : 0; }
  // Whether evictions wait. Then somebody has to Publish, as nobody may wait for an answer.
  bool evictions_wait() const { return waits() && waiting_->waiting_bytes() != 0; }
  // Whether so much waits that long values should wait before they are fetched. A hint.
  bool crowded() const { return waits() && waiting_->crowded(); }

 private:
  using Locked = Store::Locked;
  // What a write of a key is decided against.
  struct Newest {
    bool there() const { return !slot.empty(); }
    Slot slot;
    uint64_t version = 0;                            // 0 if there is no item
    Expiry expiry;                                   // never, if there is no item
    const WaitingChanges::Entry* waiting = nullptr;  // the change that it is from
    bool collides = false;                           // another key with this hash waits
  };
  // What a write makes of an item.
  struct Content {
    ItemAttributes attributes;
    Pieces value;
    bool same_value = false;
    uint64_t number = 0;  // of an Increment
  };
  // What a write that makes new content must know of the old one.
  enum class Needs : uint8_t { kValue, kAttributes };

  // Adds an update of the key whose lock is held, between BeginUpdates and EndUpdates.
  template <class Flags>
  bool AddUpdate(const Store::Guess& guess, Slot slot, std::string_view key, std::string_view value,
                 Flags&& flags, const UpdateOrigin& origin, UpdateDecided* decided);
  Newest NewestOf(const Locked& key) const;
  // Returns the newest item as the change that made it. REQUIRES: there is one.
  Change ItemOf(const Newest& newest) const;
  // Returns kOk, or a complete outcome that says why the write is refused.
  WriteOutcome Check(const Locked& key, const Newest& newest,
                     const WriteConditions& conditions) const;
  Decided Refuse(const WriteOutcome& outcome, const Newest& newest,
                 const WriteConditions& conditions);
  Change PutOf(std::string_view key, std::string_view value, ItemAttributes attributes,
               const ChangeOrigin* origin);

  // Returns how long a put of these conditions may count on what it was decided by, as
  // WaitingChanges::Entry::decided_until. A deletion may do so for ever: from the expiry on it
  // is as if the key had been deleted just before.
  static Expiry DecidedUntil(const Newest& newest, const WriteConditions& conditions) {
    return conditions.only_if_present || conditions.only_if_version ? newest.expiry : Expiry();
  }
  // Publishes a change that is decided, or records it, so that it waits.
  Decided MakeShort(const Locked& key, const Change& put, Expiry decided_until);
  Decided MakePending(const Locked& key, const Change& put, const Pending& pending,
                      Expiry decided_until);
  Decided MakeDeletion(const Locked& key, const Change& deletion);
  Decided Wait(const Locked& key, const Change& change, const Pending& pending,
               Expiry decided_until);

  // Returns kOk, or why a change is not brought.
  static ReplyStatus MayBring(const Newest& newest, const Change& change, Brings brings);
  // REQUIRES: no lock is held.
  Decided BringLong(const Change& put, Brings brings, ServerTime now);
  Decided PutLong(std::string_view key, std::string_view value, ItemAttributes attributes,
                  const WriteConditions& conditions, ServerTime now, uint64_t number = 0);
  Decided PutOverOld(std::string_view key, std::string_view value, ItemAttributes attributes,
                     const WriteConditions& conditions, ServerTime now, uint64_t number);
  Decided Commit(const Reservation& reservation, Change put, const WriteConditions& conditions,
                 ServerTime now);
  // Writes what make(old item or nullptr; Content*) says. `attributes` are for a key without an
  // item; an item that is there keeps its own, unless `make` changes them. If that needs a value
  // which is on the disk, says so (WriteOutcome::needs_value), and does nothing.
  template <class Make>
  Decided Modify(std::string_view key, ItemAttributes attributes, const WriteConditions& conditions,
                 ServerTime now, Needs needs, Make make);
  // What becomes of a lease on the item.
  enum class Lease : uint8_t { kIsAwaited, kIsForgotten };
  Decided DeleteOne(std::string_view key, const WriteConditions& conditions, ServerTime now,
                    Lease lease);

  // Returns false if it must be tried again later.
  bool PublishOne(const WaitingChanges::Entry& entry) GANNET_REQUIRES(publish_mutex_);
  bool PublishPut(const WaitingChanges::Entry& entry) GANNET_REQUIRES(publish_mutex_);
  bool UndoAndPop(const WaitingChanges::Entry& entry, ReplyStatus status)
      GANNET_REQUIRES(publish_mutex_);
  // The updates with which the queue begins.
  void PublishUpdates(uint64_t safe) GANNET_REQUIRES(publish_mutex_);
  bool PublishByGuess(const WaitingChanges::Entry& entry) GANNET_REQUIRES(publish_mutex_);
  void PublishUpdate(const WaitingChanges::Entry& entry) GANNET_REQUIRES(publish_mutex_);
  void PublishDeletion(const WaitingChanges::Entry& entry) GANNET_REQUIRES(publish_mutex_);

  Store* const store_;
  std::unique_ptr<WaitingChanges> waiting_;  // nullptr: writes do not wait
  WordMutex publish_mutex_;                  // taken before a key's lock
};

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_WRITES_H_
