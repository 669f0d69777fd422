#ifndef GANNET_SERVER_MEMORY_STORE_RECORDED_UPDATES_H_
#define GANNET_SERVER_MEMORY_STORE_RECORDED_UPDATES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "server/log/changes/update_lane_inline.h"
#include "server/memory/store/store_update.h"

namespace gannet {

// The fast path of puts in a store that records its changes and publishes them at once: updates of
// different keys, which are recorded together.
//
//   while (updates.Add(...)) ...  // each takes its key's lock
//   updates.Make();               // records all, writes the items, releases the locks
//
// As in any other write, a key's lock is held from the decision until the item is written, and the
// change is recorded in between. So nobody sees an update that is not recorded. The first one may
// wait for its lock, as nothing is held then. The others take theirs only if it is free, so no two
// threads wait for each other.
//
// One thread. Between Add and Make it calls nothing else that takes a key's lock.
class Store::RecordedUpdates {
 public:
  // Not many: other threads may wait for the locks.
  static constexpr size_t kMax = 16;

  // `store` outlives this.
  explicit RecordedUpdates(Store* store) : store_(store) {}
  RecordedUpdates(const RecordedUpdates&) = delete;
  RecordedUpdates& operator=(const RecordedUpdates&) = delete;

  // Returns false, without a side effect, if the put is no update, or none is recorded now, or it
  // cannot be together with those that were added. Then Make; and if none was added, put it
  // otherwise. As Store::UpdateInPlace. REQUIRES: records().
  template <class Flags>
  bool Add(const Guess& guess, std::string_view key, std::string_view value, Flags&& flags,
           uint64_t session_token, uint64_t sequence, Update* update);
  void Make();

 private:
  struct Held {
    std::optional<Index::KeyTry> lock;
    uint64_t hash;
    Slot slot;
    const std::byte* body;  // in memory_
  };
  // Returns false if none is recorded now.
  bool Begin();

  Store* const store_;
  size_t count_ = 0;
  std::array<Held, kMax> held_;
  UpdateLane lane_;
  std::array<std::byte, kMax * UpdateLane::kMemoryMin> memory_;
};

[[gnu::noinline]] inline bool Store::RecordedUpdates::Begin() {
  if (!store_->sink_->TakesUpdates()) return false;
  lane_.Begin(0);
  lane_.UseMemory(memory_);
  return true;
}

template <class Flags>
[[gnu::always_inline]] inline bool Store::RecordedUpdates::Add(
    const Guess& guess, std::string_view key, std::string_view value, Flags&& flags,
    uint64_t session_token, uint64_t sequence, Update* update) {
  if (count_ == kMax || SealedItemBytes(key.size(), value.size()) > kInPlaceBytesMax) return false;
  if (count_ == 0 && !Begin()) return false;
  Held& held = held_[count_];
  const Index::KeyTry& lock =
      held.lock.emplace(store_->index_, KeyHash(guess.hash),
                        count_ == 0 ? Index::KeyTry::May::kWait : Index::KeyTry::May::kTry);
  if (!lock.held() ||
      !store_->FindToUpdate(lock, guess, key, static_cast<uint32_t>(value.size()), &held.slot)) {
    held.lock.reset();
    return false;
  }
  *update = {store_->NextVersion(), held.slot.word()};
  held.hash = guess.hash;
  // There is room: the memory is enough for the longest ones.
  held.body = lane_.Append({.version = update->version,
                            .flags = flags(),
                            .key = key,
                            .value = value,
                            .session_token = session_token,
                            .sequence = sequence});
  ++count_;
  return true;
}

inline void Store::RecordedUpdates::Make() {
  if (count_ == 0) return;
  lane_.Seal();
  store_->sink_->RecordUpdates(&lane_);
  for (Held& held : std::span(held_).first(count_)) {
    store_->WriteUpdate(KeyHash(held.hash), held.slot, ItemUpdateOf(held.body));
    held.lock.reset();
  }
  count_ = 0;
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_RECORDED_UPDATES_H_
