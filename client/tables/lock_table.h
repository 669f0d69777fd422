#ifndef GANNET_CLIENT_TABLES_LOCK_TABLE_H_
#define GANNET_CLIENT_TABLES_LOCK_TABLE_H_

#include <algorithm>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"

namespace gannet {

// The locks that this client holds at one server by the present id of its connections: which lock
// words, and for which keys. Many keys share a word, so two keys of one client can have the same
// word. A server that keeps a session's locks gives its next connection the same id.
class LockTable {
 public:
  // The most locks that a client may hold at once. Further ones are refused, so that memory has a
  // bound.
  static constexpr uint32_t kHeldMax = 4096;

  LockTable() { held_.reserve(64); }

  // Starts over with another id. All locks held by the old one are lost. The count goes on, so no
  // word is made twice, whatever ids are told.
  void Restart(uint32_t connection_id, uint32_t lock_words) {
    connection_id_ = connection_id;
    lock_words_ = lock_words;
    held_.clear();
  }

  uint64_t IndexOf(KeyHash hash) const { return hash.LockIndex(lock_words_); }
  bool full() const { return held_.size() >= kHeldMax; }

  // Returns the word with which to acquire a key's lock. No earlier acquisition had it (until 2^20
  // later ones).
  LockWord NextWord(KeyHash hash) { return LockWord::Of(connection_id_, ++count_, hash.LockTag()); }

  // `changes`: Router::Route::changes of the key's partition. When that has changed, the lock is
  // lost: the partition may have been elsewhere, and another client may have locked it there.
  void OnAcquired(KeyHash hash, LockWord word, uint32_t changes = 0) {
    Acquisitions& all = held_[IndexOf(hash)];
    // `word` found the lock word free. So those that were known before it was made are lost.
    const auto lost = [this, word](const Held& it) { return WasMadeAfter(it.known_at, word); };
    all.erase(std::remove_if(all.begin(), all.end(), lost), all.end());
    all.push_back({word, count_, changes, hash.value()});
  }
  void OnReleased(KeyHash hash, LockWord word) {
    const auto it = held_.find(IndexOf(hash));
    if (it == held_.end()) return;
    Acquisitions& all = it->second;
    const auto released = [word](const Held& held) { return held.word == word; };
    all.erase(std::remove_if(all.begin(), all.end(), released), all.end());
    if (all.empty()) held_.erase(it);
  }

  // Returns whether this client holds `hash`'s lock by `word`, for all it knows.
  bool Holds(KeyHash hash, LockWord word, uint32_t changes = 0) const {
    return AnyOf(hash, [word, changes](const Held& held) {
      return held.word == word && held.changes == changes;
    });
  }
  // Returns whether it acquired the lock by `word` and has not released it. It may have lost it
  // with a change of the partition.
  bool HasToRelease(KeyHash hash, LockWord word) const {
    return AnyOf(hash, [word](const Held& held) { return held.word == word; });
  }
  // Returns whether this client holds the lock word of `hash` for another key. To wait for it would
  // be to wait for oneself.
  bool HoldsForAnotherKey(KeyHash hash) const {
    return AnyOf(hash, [hash](const Held& held) { return held.key_hash != hash.value(); });
  }
  bool IsOfThisConnection(LockWord word) const { return word.connection_id() == connection_id_; }
  // 0: it has none.
  uint32_t connection_id() const { return connection_id_; }

 private:
  static constexpr uint32_t kCountMask = 0xfffff;  // what a word has of its count

  struct Held {
    LockWord word;
    uint32_t known_at;  // count_ when it became known
    uint32_t changes;
    uint64_t key_hash;
  };
  // Nearly always one. Two operations that take the same word at once may both get it, one after
  // the other, if the first one's lease ends or its lock is broken. Their answers may come in any
  // order, so the client does not know which of them has it now. The server will say.
  using Acquisitions = absl::InlinedVector<Held, 1>;

  // Whether `word` was made after `count` words were.
  bool WasMadeAfter(uint32_t count, LockWord word) const {
    const uint32_t made = count_ - ((count_ - word.count()) & kCountMask);
    return static_cast<int32_t>(made - count) > 0;
  }
  template <class F>
  bool AnyOf(KeyHash hash, F f) const {
    const auto it = held_.find(IndexOf(hash));
    return it != held_.end() && std::any_of(it->second.begin(), it->second.end(), f);
  }

  uint32_t connection_id_ = 0;
  uint32_t lock_words_ = 1;
  uint32_t count_ = 0;
  absl::flat_hash_map<uint64_t, Acquisitions> held_;  // by index of the word
};

}  // namespace gannet

#endif  // GANNET_CLIENT_TABLES_LOCK_TABLE_H_
