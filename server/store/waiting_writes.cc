#include "server/store/waiting_writes.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/store/hash_of_home.h"
#include "server/store/large_writer.h"
#include "server/store/store_find.h"
#include "server/store/write_limits.h"

namespace gannet {
namespace {

// A group: so many are published before others get the mutex.
constexpr int kPublishedAtOnce = 32;
// Half of what the journal takes before it refuses changes.
constexpr uint64_t kCrowdedBytes = 32 << 20;

}  // namespace

// While it lives, the key counts as one with a waiting write. Push keeps it so.
class WaitingWrites::KeyInUse {
 public:
  KeyInUse(WaitingKeys* keys, KeyHash hash) : keys_(keys), hash_(hash) { keys_->Add(hash_); }
  ~KeyInUse() { keys_->Remove(hash_); }
  KeyInUse(const KeyInUse&) = delete;
  KeyInUse& operator=(const KeyInUse&) = delete;

 private:
  WaitingKeys* const keys_;
  const KeyHash hash_;
};

WaitingWrites::WaitingWrites(Store* store, Record record)
    : store_(store), record_(std::move(record)) {
  if (store_->evicts()) store_->evictor_->Spare(&keys_);
}

WaitingWrites::~WaitingWrites() {
  if (store_->evicts()) store_->evictor_->Spare(nullptr);
  for (const Entry& entry : queue_) {
    if (entry.kind == Kind::kPut) {
      store_->FreeBlock(entry.pending.offset, entry.pending.size_class);
    }
  }
}

// An item that has expired counts as absent, wherever it is.
WaitingWrites::Found WaitingWrites::FoundIn(const Store& store, const Entry* entry,
                                            std::string_view key, uint64_t now_ms) {
  Found found{.current = {}, .entry = entry, .collides = entry->key != key};
  const Pending& pending = entry->pending;
  if (entry->kind != Kind::kPut) return found;
  if (pending.expiry_ms != 0 && pending.expiry_ms <= store.NowMs(now_ms)) return found;
  found.current.slot = Slot::Of(entry->hash.Tag(), pending.size_class, pending.offset);
  found.current.version = pending.version;
  return found;
}

WaitingWrites::Found WaitingWrites::Find(KeyHash hash, std::string_view key,
                                         uint64_t now_ms) const {
  const auto last = last_.find(hash.value());
  if (last != last_.end()) return FoundIn(*store_, last->second, key, now_ms);
  const Index::Lock lock(store_->index_, hash);
  return {.current = store_->FindCurrent(hash, key, now_ms)};
}

// The block of a waiting write stays as it is as long as the mutex is held. That of the store's
// item only as long as the key's lock is held.
WaitingWrites::Found WaitingWrites::FindValue(KeyHash hash, std::string_view key, uint64_t now_ms,
                                              std::string* value,
                                              ItemAttributes* attributes) const {
  const auto copy = [&](Slot slot) {
    const Change item = ChangeOfItem(store_->Block(slot.offset()), store_->LoadHeader(slot));
    value->assign(item.value);
    *attributes = {item.flags, item.expiry_ms};
  };
  const auto last = last_.find(hash.value());
  if (last != last_.end()) {
    const Found found = FoundIn(*store_, last->second, key, now_ms);
    if (found.current.there()) copy(found.current.slot);
    return found;
  }
  const Index::Lock lock(store_->index_, hash);
  const Found found{.current = store_->FindCurrent(hash, key, now_ms)};
  if (found.current.there()) copy(found.current.slot);
  return found;
}

uint64_t WaitingWrites::Push(Entry entry) {
  keys_.Add(entry.hash);
  entry.ticket = ++tickets_;
  queue_.push_back(std::move(entry));
  const Entry& pushed = queue_.back();
  if (pushed.kind != Kind::kNothing) last_[pushed.hash.value()] = &pushed;
  given_.store(tickets_, std::memory_order_relaxed);
  LookWhetherCrowded();
  return pushed.ticket;
}

void WaitingWrites::LookWhetherCrowded() {
  const uint64_t bytes = queue_.empty() ? 0 : queue_.back().position - published_position_;
  crowded_.store(!failed_ && bytes > kCrowdedBytes, std::memory_order_relaxed);
}

// What waits further behind must be on disk then, too: positions in the queue do not fall.
WaitingWrites::Decided WaitingWrites::Refuse(const WriteOutcome& outcome, const Found& found,
                                             KeyHash hash, std::string_view key) {
  if (found.entry == nullptr) return {.outcome = outcome};
  if (failed_) return {.outcome = {.status = ReplyStatus::kDiskRefuses}};
  return {outcome, Push({.ticket = 0,
                         .position = queue_.back().position,
                         .hash = hash,
                         .key = std::string(key),
                         .kind = Kind::kNothing,
                         .pending = {}})};
}

WaitingWrites::Decided WaitingWrites::AddPut(KeyHash hash, std::string_view key,
                                             const Pending& pending, const ChangeOrigin* origin) {
  const Slot slot = Slot::Of(hash.Tag(), pending.size_class, pending.offset);
  Change change = ChangeOfItem(store_->Block(pending.offset), store_->LoadHeader(slot));
  SetOrigin(origin, &change);
  const std::optional<uint64_t> position = record_(change);
  if (!position) {
    store_->FreeBlock(pending.offset, pending.size_class);
    return {.outcome = {.status = ReplyStatus::kDiskRefuses}};
  }
  const uint64_t ticket = Push({.ticket = 0,
                                .position = *position,
                                .hash = hash,
                                .key = std::string(key),
                                .kind = Kind::kPut,
                                .pending = pending});
  return {{.version = pending.version, .slot = slot.word()}, ticket};
}

WaitingWrites::Decided WaitingWrites::HeapFull() {
  store_->refused_heap_full_.fetch_add(1, std::memory_order_relaxed);
  return {.outcome = {.status = ReplyStatus::kHeapFull}};
}

WaitingWrites::Decided WaitingWrites::Put(std::string_view key, std::string_view value,
                                          ItemAttributes attributes,
                                          const WriteConditions& conditions, uint64_t now_ms) {
  if (!WithinLimits(key, value.size())) {
    return {.outcome = {.status = ReplyStatus::kInvalidArgument}};
  }
  const auto reservation = store_->Reserve(key, static_cast<uint32_t>(value.size()), now_ms);
  if (!reservation) return HeapFull();
  StoreValueAt(reservation->value.data(), value);
  return CommitPut(*reservation, key, attributes, conditions, now_ms);
}

WaitingWrites::Decided WaitingWrites::CommitPut(const Reservation& reservation,
                                                std::string_view key, ItemAttributes attributes,
                                                const WriteConditions& conditions,
                                                uint64_t now_ms) {
  const KeyHash hash = KeyHash::Of(key, store_->superblock_.hash_seed);
  Pending pending = store_->Prepare(reservation, hash, key, attributes);
  pending.recorded = true;
  MutexLock lock(mutex_);
  const KeyInUse use(&keys_, hash);
  // An eviction of the key may be under way. To find the item is to wait for that.
  if (!conditions.any() && !store_->evicts() && !last_.contains(hash.value())) {
    return AddPut(hash, key, pending, conditions.origin);
  }
  const Found found = Find(hash, key, now_ms);
  const WriteOutcome checked = Judge(hash, found, conditions);
  if (checked.status == ReplyStatus::kOk) return AddPut(hash, key, pending, conditions.origin);
  store_->Abandon(reservation);
  return Refuse(checked, found, hash, key);
}

WriteOutcome WaitingWrites::Judge(KeyHash hash, const Found& found,
                                  const WriteConditions& conditions) const {
  if (found.collides) return {.status = ReplyStatus::kTryAgain};
  return store_->Check(hash, found.current, conditions);
}

WaitingWrites::Decided WaitingWrites::Delete(std::string_view key,
                                             const WriteConditions& conditions, uint64_t now_ms) {
  const KeyHash hash = KeyHash::Of(key, store_->superblock_.hash_seed);
  MutexLock lock(mutex_);
  const KeyInUse use(&keys_, hash);
  const Found found = Find(hash, key, now_ms);
  WriteOutcome outcome = Judge(hash, found, conditions);
  if (outcome.status == ReplyStatus::kOk && !found.current.there()) {
    outcome = {.status = ReplyStatus::kNotFound};
  }
  if (outcome.status != ReplyStatus::kOk) return Refuse(outcome, found, hash, key);
  Change change{.kind = Change::Kind::kDelete, .version = store_->NextVersion(), .key = key};
  SetOrigin(conditions.origin, &change);
  const std::optional<uint64_t> position = record_(change);
  if (!position) return {.outcome = {.status = ReplyStatus::kDiskRefuses}};
  return {{},
          Push({.ticket = 0,
                .position = *position,
                .hash = hash,
                .key = std::string(key),
                .kind = Kind::kDelete,
                .pending = {}})};
}

template <class Make>
WaitingWrites::Decided WaitingWrites::Modify(std::string_view key, ItemAttributes attributes,
                                             const WriteConditions& conditions, uint64_t now_ms,
                                             Make make) {
  const KeyHash hash = KeyHash::Of(key, store_->superblock_.hash_seed);
  MutexLock lock(mutex_);
  const KeyInUse use(&keys_, hash);
  std::string value;
  Made made{attributes, {}};
  const Found found = FindValue(hash, key, now_ms, &value, &made.attributes);
  WriteOutcome outcome = Judge(hash, found, conditions);
  if (outcome.status == ReplyStatus::kOk) {
    outcome.status =
        make(found.current.there() ? std::optional<std::string_view>(value) : std::nullopt, &made);
  }
  if (outcome.status != ReplyStatus::kOk) return Refuse(outcome, found, hash, key);
  const auto reservation = store_->Reserve(key, static_cast<uint32_t>(made.pieces.size()), now_ms);
  if (!reservation) return HeapFull();
  std::string_view bytes = made.pieces.first;
  std::string both;
  if (!made.pieces.second.empty()) {
    both.resize(made.pieces.size());
    bytes = made.pieces.CopyTo(both.data());
  }
  StoreValueAt(reservation->value.data(), bytes);
  Pending pending = store_->Prepare(*reservation, hash, key, made.attributes);
  pending.recorded = true;
  return AddPut(hash, key, pending, conditions.origin);
}

WaitingWrites::Decided WaitingWrites::Append(std::string_view key, std::string_view piece,
                                             Store::End end, ItemAttributes made,
                                             const WriteConditions& conditions, uint64_t now_ms) {
  return Modify(key, made, conditions, now_ms, [&](std::optional<std::string_view> old, Made* to) {
    return MakeAppended(old, piece, end == Store::End::kFront, &to->pieces);
  });
}

WaitingWrites::Decided WaitingWrites::Increment(std::string_view key,
                                                const CounterOperands& operands,
                                                ItemAttributes made,
                                                const WriteConditions& conditions,
                                                uint64_t now_ms) {
  std::array<char, kCounterBytesMax> text;
  NumberedConditions numbered(conditions);
  Decided decided =
      Modify(key, made, numbered.get(), now_ms, [&](std::optional<std::string_view> old, Made* to) {
        int64_t number = 0;
        const ReplyStatus status = MakeIncremented(old, operands, &text, &number, &to->pieces);
        numbered.SetNumber(number);
        return status;
      });
  if (decided.outcome.status == ReplyStatus::kOk) decided.outcome.lock_word = numbered.number();
  return decided;
}

WaitingWrites::Decided WaitingWrites::Touch(std::string_view key, uint64_t expiry_ms,
                                            const WriteConditions& conditions, uint64_t now_ms) {
  return Modify(key, {}, conditions, now_ms, [&](std::optional<std::string_view> old, Made* to) {
    if (!old) return ReplyStatus::kNotFound;
    to->attributes.expiry_ms = expiry_ms;
    to->pieces = {*old, {}};
    return ReplyStatus::kOk;
  });
}

// As Store::RemoveAll: while the index grows, to lock a key moves its old home into the new table.
bool WaitingWrites::ListKeys(IndexTable& table, uint64_t home, std::vector<std::string>* keys) {
  const uint64_t homes = table.geometry().homes;
  { const Index::Lock migrates(store_->index_, KeyHash(FirstHashOf(home, homes))); }
  { const Index::Lock migrates(store_->index_, KeyHash(FirstHashOf(home + 1, homes) - 1)); }
  const Index::Lock lock(store_->index_, table, home);
  if (!store_->index_.IsCurrent(table)) return false;
  std::vector<Slot> slots;
  table.AppendSlots(home, &slots);
  for (const Slot slot : slots) {
    keys->emplace_back(ChangeOfItem(store_->Block(slot.offset()), store_->LoadHeader(slot)).key);
  }
  return true;
}

WaitingWrites::DecidedFlush WaitingWrites::FlushSome(uint64_t position, uint64_t now_ms) {
  DecidedFlush flushed;
  std::vector<std::string> keys;
  for (uint64_t looked_at = 0; looked_at < kFlushHomesPerStep &&
                               flushed.outcome.removed < kFlushItemsPerStep &&
                               !flushed.outcome.refused;) {
    const std::shared_ptr<IndexTable> table = store_->index_.Hold();
    const uint64_t homes = table->geometry().homes;
    const uint64_t home = MapToRange(position, homes);
    keys.clear();
    if (!ListKeys(*table, home, &keys)) continue;  // the index has begun to grow
    for (const std::string& key : keys) {
      const Decided decided = Delete(key, {}, now_ms);
      flushed.ticket = std::max(flushed.ticket, decided.ticket);
      flushed.outcome.removed += decided.outcome.status == ReplyStatus::kOk;
      flushed.outcome.refused |= decided.outcome.status == ReplyStatus::kDiskRefuses;
    }
    if (flushed.outcome.refused) break;
    ++looked_at;
    position = FirstHashOf(home + 1, homes);
    if (home + 1 == homes) break;
  }
  flushed.outcome.next = position;
  return flushed;
}

// The tickets of a group are made known together. Workers look at them all the time; they would
// answer each write by itself otherwise, and each client would be woken for each of its answers.
void WaitingWrites::Publish(uint64_t synced) {
  for (bool more = true; more;) {
    MutexLock lock(mutex_);
    uint64_t published = published_.load(std::memory_order_relaxed);  // only this thread stores it
    for (int i = 0; i < kPublishedAtOnce && more; ++i) {
      more = !queue_.empty() && queue_.front().position <= synced && PublishFirst(&published);
    }
    published_.store(published, std::memory_order_release);
    if (more) continue;
    const bool all = queue_.empty() || queue_.front().position > synced;
    if (all) published_position_ = synced;
    LookWhetherCrowded();
  }
}

void WaitingWrites::Fail() {
  MutexLock lock(mutex_);
  failed_ = true;
  LookWhetherCrowded();
}

bool WaitingWrites::PublishFirst(uint64_t* published) {
  const Entry& entry = queue_.front();
  if (entry.kind == Kind::kPut) {
    if (PublishPut(entry) != ReplyStatus::kOk && !Undo(entry)) return false;
  } else if (entry.kind == Kind::kDelete) {
    PublishDelete(entry);
  }
  const auto last = last_.find(entry.hash.value());
  if (last != last_.end() && last->second == &entry) last_.erase(last);
  keys_.Remove(entry.hash);
  *published = entry.ticket;
  queue_.pop_front();
  return true;
}

// Works like Store::CommitPut, which may have to wait for the index to grow.
ReplyStatus WaitingWrites::PublishPut(const Entry& entry) {
  const uint64_t now_ms = store_->NowMs(0);
  for (int tries = 0;; ++tries) {
    ReplyStatus status;
    {
      const Index::Lock lock(store_->index_, entry.hash);
      const Store::Current current = store_->FindCurrent(entry.hash, entry.key, now_ms);
      status = store_->Install(entry.hash, current, entry.pending, nullptr, now_ms).status;
    }
    if (status != ReplyStatus::kTryAgain || tries > 0) return status;
    store_->MakeSlots();
  }
}

void WaitingWrites::PublishDelete(const Entry& entry) {
  const Index::Lock lock(store_->index_, entry.hash);
  const Store::Current current = store_->FindCurrent(entry.hash, entry.key, store_->NowMs(0));
  if (!current.there()) return;
  store_->RemoveItem(current.place, current.slot);
  store_->items_deleted_.fetch_add(1, std::memory_order_relaxed);
}

// The key has no item in the store, or there would have been a slot for it.
bool WaitingWrites::Undo(const Entry& failed) {
  const KeyHash hash = failed.hash;
  const std::string key = failed.key;
  const std::optional<uint64_t> position =
      record_({.kind = Change::Kind::kDelete, .version = store_->NextVersion(), .key = key});
  if (!position) return false;
  std::vector<uint64_t> undone;
  for (Entry& entry : queue_) {
    if (entry.key != key) continue;
    if (entry.kind == Kind::kPut) {
      store_->FreeBlock(entry.pending.offset, entry.pending.size_class);
    }
    entry.kind = Kind::kNothing;
    undone.push_back(entry.ticket);
  }
  last_.erase(hash.value());
  const uint64_t ticket = Push({.ticket = 0,
                                .position = *position,
                                .hash = hash,
                                .key = key,
                                .kind = Kind::kNothing,
                                .pending = {}});
  for (const uint64_t it : undone) undone_[it] = ticket;
  any_undone_.store(true, std::memory_order_relaxed);
  return true;
}

std::optional<uint64_t> WaitingWrites::TakeUndone(uint64_t ticket) {
  if (!any_undone_.load(std::memory_order_relaxed)) return std::nullopt;
  MutexLock lock(mutex_);
  const auto it = undone_.find(ticket);
  if (it == undone_.end()) return std::nullopt;
  const uint64_t to_wait_for = it->second;
  undone_.erase(it);
  any_undone_.store(!undone_.empty(), std::memory_order_relaxed);
  return to_wait_for;
}

}  // namespace gannet
