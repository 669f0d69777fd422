#ifndef GANNET_SERVER_STORE_WAITING_WRITES_H_
#define GANNET_SERVER_STORE_WAITING_WRITES_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"
#include "common/layout/key_hash.h"
#include "server/journal/record.h"
#include "server/store/new_value.h"
#include "server/store/pending.h"
#include "server/store/reservation.h"
#include "server/store/store.h"
#include "server/store/waiting_keys.h"
#include "server/store/write_outcome.h"

namespace gannet {

// Writes that are decided and recorded, and wait for the disk before anybody may see them. All
// writes of clients go through it if the server was started with --sync=always:
//
//   decided = waiting.Put(...);                  // a worker: conditions, version, record
//   waiting.Publish(journal.synced());           // the disk's thread, after each sync
//   if (waiting.published() >= decided.ticket)   // the worker: answers
//
// Invariants:
//   1. A write is published when its record is on disk, and answered when it is published. Writes
//      are published in the order in which they were recorded.
//   2. A write is decided against the key's last waiting write, or if there is none, against the
//      store. An answer that tells of a waiting write waits for that one.
//   3. A waiting write has its own block. The item that it replaces does not change meanwhile. So a
//      replacement needs room for both, as with a memory file.
//   4. A key with a waiting write is not evicted, or the eviction would be recorded behind it and
//      happen before it.
//   5. If the index has no slot for a waiting write, the write and all that were decided behind it
//      are undone: a deletion is recorded, and when that is on disk, they are refused.
//
// A state machine: it starts no thread and waits for nothing. Thread safety: any thread, but
// Publish from one at a time. Its mutex is taken before the locks of index and journal.
class WaitingWrites {
 public:
  // Records a change and returns the position that must be on disk, or nullopt if it refuses.
  // Positions grow from call to call.
  using Record = std::function<std::optional<uint64_t>(const Change&)>;

  // `store` outlives it, and nobody writes to it otherwise.
  WaitingWrites(Store* store, Record record);
  ~WaitingWrites();
  WaitingWrites(const WaitingWrites&) = delete;
  WaitingWrites& operator=(const WaitingWrites&) = delete;

  struct Decided {
    WriteOutcome outcome;
    // The answer may be given when published() has come to this; 0 = at once. Unless TakeUndone
    // says something else then.
    uint64_t ticket = 0;
  };

  // As those of Store. kHeapFull: no block is free, even if the key has one.
  Decided Put(std::string_view key, std::string_view value, ItemAttributes attributes,
              const WriteConditions& conditions, uint64_t now_ms);
  Decided CommitPut(const Reservation& reservation, std::string_view key, ItemAttributes attributes,
                    const WriteConditions& conditions, uint64_t now_ms);
  Decided Delete(std::string_view key, const WriteConditions& conditions, uint64_t now_ms);
  Decided Append(std::string_view key, std::string_view piece, Store::End end, ItemAttributes made,
                 const WriteConditions& conditions, uint64_t now_ms);
  Decided Increment(std::string_view key, const CounterOperands& operands, ItemAttributes made,
                    const WriteConditions& conditions, uint64_t now_ms);
  Decided Touch(std::string_view key, uint64_t expiry_ms, const WriteConditions& conditions,
                uint64_t now_ms);
  struct DecidedFlush {
    FlushOutcome outcome;
    uint64_t ticket = 0;
  };
  // Of the items that the store has. Writes that wait meanwhile may come before it or after it.
  DecidedFlush FlushSome(uint64_t position, uint64_t now_ms);

  // Counts a write for which Store::Reserve had no block.
  void CountHeapFull() { HeapFull(); }

  // Publishes what is recorded below `synced`, which is on disk.
  void Publish(uint64_t synced);
  // The disk has failed. Nobody knows what is on it, so what waits is never answered. Writes are
  // refused from now on.
  void Fail();
  // The last ticket whose write is published. Acquire: whoever sees it sees what was published.
  uint64_t published() const { return published_.load(std::memory_order_acquire); }
  // Everything that was recorded below this position is in the store. Of the thread that publishes.
  uint64_t published_position() const { return published_position_; }
  // If the write of this ticket was undone, returns the ticket to wait for; then answer
  // kIndexFull. Ask once for each ticket, when published() has come to it.
  std::optional<uint64_t> TakeUndone(uint64_t ticket);
  // The last ticket that was given. A hint.
  uint64_t given() const { return given_.load(std::memory_order_relaxed); }
  // Whether so much is recorded and not published that long values should wait before they are
  // fetched. A hint.
  bool crowded() const { return crowded_.load(std::memory_order_relaxed); }

 private:
  enum class Kind : uint8_t { kPut, kDelete, kNothing };
  struct Entry {
    uint64_t ticket;
    uint64_t position;  // that must be on disk
    KeyHash hash;
    std::string key;
    Kind kind;
    Pending pending;  // of a put
  };
  // What a write of a key finds.
  struct Found {
    Store::Current current;        // with a place only if the item is the store's
    const Entry* entry = nullptr;  // the waiting write that it was found in
    bool collides = false;         // another key with this hash waits
  };
  // What a write makes of an item.
  struct Made {
    ItemAttributes attributes;
    Pieces pieces;
  };
  class KeyInUse;

  Found Find(KeyHash hash, std::string_view key, uint64_t now_ms) const GANNET_REQUIRES(mutex_);
  // The same, and copies the value and the attributes of the item, if there is one.
  Found FindValue(KeyHash hash, std::string_view key, uint64_t now_ms, std::string* value,
                  ItemAttributes* attributes) const GANNET_REQUIRES(mutex_);
  static Found FoundIn(const Store& store, const Entry* entry, std::string_view key,
                       uint64_t now_ms);
  // Returns kOk, or a complete outcome that says why the write is refused.
  WriteOutcome Judge(KeyHash hash, const Found& found, const WriteConditions& conditions) const;
  // Returns the outcome, with a ticket if it tells of a waiting write.
  Decided Refuse(const WriteOutcome& outcome, const Found& found, KeyHash hash,
                 std::string_view key) GANNET_REQUIRES(mutex_);
  Decided AddPut(KeyHash hash, std::string_view key, const Pending& pending,
                 const ChangeOrigin* origin) GANNET_REQUIRES(mutex_);
  Decided HeapFull();
  uint64_t Push(Entry entry) GANNET_REQUIRES(mutex_);
  void LookWhetherCrowded() GANNET_REQUIRES(mutex_);
  // Writes what make(old value, or nullopt; Made*) says. `attributes` are for a key without an
  // item; an item that is there keeps its own, unless `make` changes them.
  template <class Make>
  Decided Modify(std::string_view key, ItemAttributes attributes, const WriteConditions& conditions,
                 uint64_t now_ms, Make make);
  // Returns false if `table` is not the newest any more.
  bool ListKeys(IndexTable& table, uint64_t home, std::vector<std::string>* keys);

  // Sets its ticket. Returns false if it must be tried again later.
  bool PublishFirst(uint64_t* published) GANNET_REQUIRES(mutex_);
  ReplyStatus PublishPut(const Entry& entry) GANNET_REQUIRES(mutex_);
  void PublishDelete(const Entry& entry) GANNET_REQUIRES(mutex_);
  bool Undo(const Entry& failed) GANNET_REQUIRES(mutex_);

  Store* const store_;
  const Record record_;
  WaitingKeys keys_;

  Mutex mutex_;
  std::deque<Entry> queue_ GANNET_GUARDED_BY(mutex_);  // in the order of tickets and positions
  // The last put or deletion that waits, by the key's hash. Entries of a deque do not move.
  absl::flat_hash_map<uint64_t, const Entry*> last_ GANNET_GUARDED_BY(mutex_);
  uint64_t tickets_ GANNET_GUARDED_BY(mutex_) = 0;  // given so far
  bool failed_ GANNET_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, uint64_t> undone_ GANNET_GUARDED_BY(mutex_);  // by ticket: what to wait for
  // Release: who sees a ticket sees what was published, and what was undone.
  std::atomic<uint64_t> published_{0};
  // Relaxed: written before published_, and asked after it.
  std::atomic<bool> any_undone_{false};
  std::atomic<uint64_t> given_{0};    // tickets_, for hints; relaxed
  std::atomic<bool> crowded_{false};  // relaxed: a hint

  uint64_t published_position_ = 0;  // changed by the thread that publishes, under the mutex
};

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_WAITING_WRITES_H_
