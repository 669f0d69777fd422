#ifndef GANNET_CLIENT_TABLES_LOCK_TABLE_H_
#define GANNET_CLIENT_TABLES_LOCK_TABLE_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"

namespace gannet {

// The locks that this client holds at one server on its present connection: which lock words, and
// for which keys. Many keys share a word, so two keys of one client can have the same word.
class LockTable {
 public:
  // The most locks that a client may hold at once. Further ones are refused, so that memory has a
  // bound.
  static constexpr uint32_t kHeldMax = 4096;

  LockTable() { held_.reserve(64); }

  // Starts over on a new connection. All locks held on the old one are lost.
  void Restart(uint32_t connection_id, uint32_t lock_words) {
    connection_id_ = connection_id;
    lock_words_ = lock_words;
    count_ = 0;
    held_.clear();
  }

  uint64_t IndexOf(KeyHash hash) const { return hash.LockIndex(lock_words_); }
  bool full() const { return held_.size() >= kHeldMax; }

  // Returns the word with which to acquire a key's lock. No earlier acquisition had it (until 2^20
  // later ones).
  LockWord NextWord(KeyHash hash) { return LockWord::Of(connection_id_, ++count_, hash.LockTag()); }

  void OnAcquired(KeyHash hash, LockWord word) { held_[IndexOf(hash)] = {word, hash.value()}; }
  void OnReleased(KeyHash hash, LockWord word) {
    auto it = held_.find(IndexOf(hash));
    if (it != held_.end() && it->second.word == word) held_.erase(it);
  }

  // Whether this client holds `hash`'s lock by `word` on its present connection.
  bool Holds(KeyHash hash, LockWord word) const {
    auto it = held_.find(IndexOf(hash));
    return it != held_.end() && it->second.word == word;
  }
  // Returns whether this client holds the lock word of `hash` for another key. To wait for it would
  // be to wait for oneself.
  bool HoldsForAnotherKey(KeyHash hash) const {
    auto it = held_.find(IndexOf(hash));
    return it != held_.end() && it->second.key_hash != hash.value();
  }
  bool IsOfThisConnection(LockWord word) const { return word.connection_id() == connection_id_; }

 private:
  struct Held {
    LockWord word;
    uint64_t key_hash;
  };
  uint32_t connection_id_ = 0;
  uint32_t lock_words_ = 1;
  uint32_t count_ = 0;
  absl::flat_hash_map<uint64_t, Held> held_;  // by index of the word
};

}  // namespace gannet

#endif  // GANNET_CLIENT_TABLES_LOCK_TABLE_H_
