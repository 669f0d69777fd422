#ifndef GANNET_SERVER_SESSIONS_SESSION_PUT_OFF_KEYS_H_
#define GANNET_SERVER_SESSIONS_SESSION_PUT_OFF_KEYS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gannet {

// The keys of which a session's writes are put off, so that the writes of a pipeline keep their
// order: of a client that sends PUT a=1, PUT a=2 and is told "try again" for the first one, the
// second one must not be executed before the first one is there again.
//
//   client   a=1    a=2    a=3                    a=1, again   a=2   a=3
//   server   off    off    off: behind a=1        done         done  done
//
// A write of such a key is put off, too, unless it says that it is sent again (kSentAgain): then
// the client was told, and sends no other write of the key meanwhile. So the key is forgotten. It
// is also forgotten once a number says that the client was told, in case the client gave up.
//
// Keys are known by their hashes. Empty in nearly all sessions. Has at most one entry for each of
// the session's credits. Owner thread only.
class PutOffKeys {
 public:
  bool empty() const { return keys_.empty(); }

  // A write of this key is put off. Requests with numbers from `until` on were sent by a client
  // that was told.
  void Add(uint64_t key, uint64_t until) {
    Remove(key);
    keys_.push_back({key, until});
  }
  // Returns whether a write of this key is put off.
  bool Contains(uint64_t key) const {
    return std::ranges::any_of(keys_, [key](const Key& of) { return of.hash == key; });
  }
  void Remove(uint64_t key) {
    std::erase_if(keys_, [key](const Key& of) { return of.hash == key; });
  }
  // A request of this number came. Forgets the keys of which the client was told before.
  void OnNumber(uint64_t sequence) {
    std::erase_if(keys_, [sequence](const Key& of) { return of.until <= sequence; });
  }

 private:
  struct Key {
    uint64_t hash;
    uint64_t until;
  };
  std::vector<Key> keys_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_PUT_OFF_KEYS_H_
