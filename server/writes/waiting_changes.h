#ifndef GANNET_SERVER_WRITES_WAITING_CHANGES_H_
#define GANNET_SERVER_WRITES_WAITING_CHANGES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/server_time.h"
#include "common/base/word_mutex.h"
#include "common/layout/key_hash.h"
#include "server/log/changes/change_sink.h"
#include "server/log/changes/update_body.h"
#include "server/log/changes/update_lane.h"
#include "server/memory/store/later_evictions.h"
#include "server/memory/store/pending.h"
#include "server/memory/store/store.h"
#include "server/writes/stable_queue.h"
#include "server/writes/undone_changes.h"
#include "server/writes/value_room.h"
#include "server/writes/waiting_keys.h"

namespace gannet {

// The changes that are decided and recorded, and not published yet, in the order of their records.
// Each has a ticket, as has each refusal that tells of one.
//
// Thread safety: any thread. Whoever adds, finds, takes or undoes a change of a key holds that
// key's lock (Store::Locked). So a change that was found stays until the lock is released. The
// queue's own mutex is taken behind that lock, and held for moments only.
class WaitingChanges : public LaterEvictions {
 public:
  // kUpdate: a put over an item without expiry, by a value of the same length. It has no block of
  // its own, but a body, which has key and value. It cannot fail when it is published: the
  // item stays while a change of its key waits, and other changes of the key wait behind it.
  // kEvict: a deletion by the store, which is always the first waiting change of its key.
  enum class Kind : uint8_t { kPut, kDelete, kNothing, kUpdate, kEvict };
  struct Entry {
    uint64_t ticket = 0;
    uint64_t position = 0;  // that must be safe
    uint64_t before = 0;    // the last ticket of a key with this entry of WaitingKeys, before this
    KeyHash hash{0};
    std::string key;  // not of an update
    Kind kind = Kind::kNothing;
    uint64_t version = 0;  // not of an update
    Pending pending{};     // of a put
    // When the item expires that the put was decided by. Never: also if it does not matter.
    Expiry decided_until;
    ChangeOrigin origin{};  // the request that it answers
    // Of an update: its UpdateBody, in the memory that its lane used, which keeps it until the
    // update is published.
    const std::byte* update = nullptr;
    const std::byte* guessed = nullptr;  // where its slot was
    uint64_t block_bytes = 0;            // of an eviction

    std::string_view Key() const { return kind == Kind::kUpdate ? UpdateKeyOf(update) : key; }
    // Returns the put that an update makes.
    Change Put() const {
      Change put;
      DecodeUpdateBody(update, &put);
      return put;
    }
  };
  using Undone = UndoneChanges::Undone;

  // A change is published when the end of its place in `recorder` is safe. The recorder outlives
  // the object.
  explicit WaitingChanges(ChangeRecorder* recorder) : recorder_(recorder) {}
  WaitingChanges(const WaitingChanges&) = delete;
  WaitingChanges& operator=(const WaitingChanges&) = delete;

  // Returns the last waiting change of a key with this hash, or nullptr.
  const Entry* LastOf(KeyHash hash) const;
  // Records a change and adds it. `pending` is the item of a put, `decided_until` as in Entry.
  // Returns its ticket, or nullopt if it was not recorded.
  std::optional<uint64_t> Add(KeyHash hash, const Change& change, const Pending& pending,
                              Expiry decided_until);
  // Begins to add updates. Returns false if none is taken now: the recorder refuses them, or there
  // is no memory. Otherwise nothing else is added until EndUpdates, so call that soon. REQUIRES: no
  // lock is held, or the lock of the key of the only update.
  GANNET_UNCHECKED_LOCKS bool BeginUpdates();
  GANNET_UNCHECKED_LOCKS void EndUpdates();
  // Adds one, in between. Returns its ticket, or 0 if something else waits for the key, or there is
  // no more memory. Defined in update.h. REQUIRES: the key's lock; the key's item has no expiry and
  // a value of this length, and at most kInPlaceBytesMax.
  GANNET_UNCHECKED_LOCKS uint64_t AddUpdate(const Store::Guess& guess,
                                            const UpdateLane::Update& update);
  // The store's evictions. MayWait is right if it returns false.
  bool MayWait(KeyHash hash) const override { return keys_.MayWait(hash); }
  bool Evict(KeyHash hash, const Change& deletion, uint64_t block_bytes) override;

  // Adds a refusal that tells of `entry`, of a request of `origin`. Returns its ticket, or nullopt
  // after Fail.
  std::optional<uint64_t> AddRefusal(const Entry& entry, const ChangeOrigin& origin);
  // Records the answer to the request of a refusal, unless it was undone already. Call it before
  // anything else of that session is recorded.
  void RecordAnswer(uint64_t ticket, const SessionRecord& answer);

  // These are for one thread at a time, which publishes. Returns the first change or refusal, if it
  // is recorded below `safe`. Otherwise returns nullptr, and notes that all below is published.
  const Entry* First(uint64_t safe);
  // Removes the first one.
  void Pop();
  // The same for updates, of which many mostly follow each other. Returns some changes with which
  // the queue begins, none only if it is empty. Of those of them that are updates and recorded
  // below what is safe, call Made for each, while its key's lock is held: from then on nobody finds
  // it. Then PopUpdates.
  std::span<const Entry> FirstRun() const {
    WordMutexLock lock(mutex_);
    return queue_.FirstRun();
  }
  void Made(const Entry& update) { keys_.Published(update.ticket); }
  void PopUpdates(size_t count);
  // Makes it known that all tickets up to this one are published.
  void SetPublished(uint64_t ticket) { published_.store(ticket, std::memory_order_release); }
  // `failed` cannot be published. So all that waits of this key is undone: a deletion is recorded,
  // and the answers become `status`. Returns the blocks, which nobody uses any more, or nullopt if
  // that is refused now; then nothing is recorded. With the deletion it is recorded which requests
  // it undoes. REQUIRES: the store has no item of the key that is alive.
  std::optional<std::vector<Pending>> Undo(const Entry& failed, uint64_t version,
                                           ReplyStatus status);

  // From now on there are no more tickets.
  void Fail();
  // The last ticket that is published. Acquire: whoever sees it sees what was published.
  uint64_t published() const { return published_.load(std::memory_order_acquire); }
  // Everything that was recorded below this position is in the store. Acquire: whoever sees it
  // finds that there.
  uint64_t published_position() const {
    return published_position_.load(std::memory_order_acquire);
  }
  // Returns nullopt if the change of this ticket was not undone. Ask once.
  std::optional<Undone> TakeUndone(uint64_t ticket) { return undone_.Take(ticket); }
  // The last ticket that was given. A hint.
  uint64_t given() const { return given_.load(std::memory_order_relaxed); }
  // Whether so much is recorded and not published that long values should wait. A hint.
  bool crowded() const { return crowded_.load(std::memory_order_relaxed); }

  // Returns the blocks of all that still waits. For the end.
  std::vector<Pending> TakeAll();

 private:
  // Of one lane in the room, so that several workers have room at once.
  static constexpr size_t kLaneBytesMax = 64 << 10;
  // Half of what the journal takes before it refuses changes.
  static constexpr uint64_t kCrowdedBytes = 32 << 20;

  uint64_t Push(Entry entry) GANNET_REQUIRES(mutex_);
  // Records a change and adds its entry. Returns its ticket, or nullopt if it was not recorded.
  std::optional<uint64_t> Record(const Change& change, Entry entry);
  // Gives the last entry of the queue its ticket.
  uint64_t Enter(Entry* entry) GANNET_REQUIRES(mutex_) {
    entry->ticket = ++tickets_;
    if (entry->kind != Kind::kNothing) entry->before = keys_.Set(entry->hash, entry->ticket);
    given_.store(tickets_, std::memory_order_relaxed);
    if (entry->position - published_position() > kCrowdedBytes) [[unlikely]]
      LookWhetherCrowded();
    return entry->ticket;
  }
  const Entry* FindLast(KeyHash hash) const GANNET_REQUIRES(mutex_);
  // Whether an update of the key may be added.
  bool MayUpdate(KeyHash hash, std::string_view key) const GANNET_REQUIRES(mutex_);
  void LookWhetherCrowded() GANNET_REQUIRES(mutex_);
  std::optional<ChangePlace> ReserveUndo(const Change& deletion, ReplyStatus status)
      GANNET_REQUIRES(mutex_);

  ChangeRecorder* const recorder_;
  WaitingKeys keys_;
  UndoneChanges undone_;

  mutable WordMutex mutex_;
  // In the order of tickets and positions. An entry does not move. The tickets are without gaps.
  StableQueue<Entry> queue_ GANNET_GUARDED_BY(mutex_);
  UpdateLane lane_ GANNET_GUARDED_BY(mutex_);  // between BeginUpdates and EndUpdates
  // Memory for lanes that the recorder gives none.
  ValueRoom room_ GANNET_GUARDED_BY(mutex_);
  bool lane_in_room_ GANNET_GUARDED_BY(mutex_) = false;
  uint64_t tickets_ GANNET_GUARDED_BY(mutex_) = 0;  // given so far
  bool failed_ GANNET_GUARDED_BY(mutex_) = false;
  // Release: who sees a ticket sees what was published, and what was undone.
  std::atomic<uint64_t> published_{0};
  std::atomic<uint64_t> given_{0};               // tickets_, for hints; relaxed
  std::atomic<bool> crowded_{false};             // relaxed: a hint
  std::atomic<uint64_t> published_position_{0};  // changed under the mutex; release
};

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_WAITING_CHANGES_H_
