#ifndef GANNET_SERVER_MEMORY_STORE_ITEM_LEASES_H_
#define GANNET_SERVER_MEMORY_STORE_ITEM_LEASES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"
#include "common/base/server_time.h"
#include "common/base/word_mutex.h"
#include "common/layout/item_lease_header.h"
#include "common/layout/key_hash.h"
#include "server/memory/store/marked_keys.h"
#include "server/memory/store/popular_items.h"

namespace gannet {

// The items that a server leases to its clients: the header and the words that those READ, and a
// mark for each key that is leased, or was until a moment ago (docs/item-leases.md).
//
//   no mark --Begin--> leased --a change, or End--> ending until `end` of that moment --> no mark
//
// Invariants:
//   1. Until the header's end, no item changes whose word is among the words. Whoever changes a key
//      asks Change first, under the key's lock, and changes nothing if that tells it to wait.
//   2. A word is taken out before the generation grows, and the generation grows before the end
//      that the mark waits for is read. It grows in the same store of the header as the next end.
//   3. The end never decreases.
//   4. The mark is of the key, whose item may move meanwhile.
// An item that expires is a change that waits for nothing: clients know when their copies expire.
//
// Times are those of the clock by which items expire. Thread safety: all methods, from any thread.
class ItemLeases {
 public:
  struct Options {
    std::span<std::byte> memory;  // zero filled; outlives the object
    uint32_t lease_ms = 0;        // 1 to kItemLeaseMsMax
  };
  explicit ItemLeases(const Options& options);
  // Seeds the header. Call it before anybody else uses the object.
  void Start(uint64_t incarnation);
  ItemLeases(const ItemLeases&) = delete;
  ItemLeases& operator=(const ItemLeases&) = delete;

  // A key is to be leased. From now on MayHave finds it. Returns false if it cannot be now.
  bool Announce(KeyHash hash);
  // That is over, whether it was leased or not.
  void Retract(KeyHash hash);
  // Leases the item of a key, whose commit word this is. Returns false if there is no free word, or
  // the key has a mark, or was written a moment ago. REQUIRES: the key's lock, until the next
  // change of the key can find the mark; whoever asks MayHave without it knows that the key was
  // announced.
  bool Begin(KeyHash hash, uint64_t word, uint64_t item_bytes, ServerTime now);
  // Returns false if the key surely has no mark and is not announced, as most keys. Costs two
  // loads. REQUIRES: the key's lock, or the answer may be out of date.
  bool MayHave(KeyHash hash) const { return marked_.MayHave(hash); }
  // For many keys: none of them has if the counts of all are 0.
  MarkedKeys::Counts counts_of_marks() const { return marked_.counts(); }
  bool IsMarked(KeyHash hash) const;
  // Ends the lease of a key that is to be changed. Returns how many ms that has to wait; 0: the key
  // has no mark any more. REQUIRES: the key's lock.
  uint64_t Change(KeyHash hash, ServerTime now);
  // Forgets the mark of a key whose item has expired. REQUIRES: the key's lock.
  void Drop(KeyHash hash);
  // An item has another commit word, as it lies elsewhere now. REQUIRES: its key's lock.
  void Moved(uint64_t from, uint64_t to);

  // End leases without a change: of the item with this commit word, or of all items.
  void End(uint64_t word);
  void EndAll();
  // Returns the keys that have marks but no leases, and whose ends are over. Drop them, each under
  // its key's lock.
  std::vector<KeyHash> Over(ServerTime now) const;

  // Makes the leases last for lease_ms from now on. Returns false if nothing is leased.
  bool Renew(ServerTime now);

  // Returns when all leases end that were given so far, if none is renewed.
  ServerTime end() const;

  // What is worth a lease.
  PopularItems& popular() { return popular_; }

  uint32_t lease_ms() const { return options_.lease_ms; }
  uint32_t words() const { return words_; }
  bool IsLeased(uint64_t word) const;
  std::vector<uint64_t> LeasedWords() const;
  // For those who watch.
  struct Counts {
    uint64_t leased = 0;        // items, now
    uint64_t leased_bytes = 0;  // of these
    uint64_t changes = 0;       // that ended a lease, and had to wait for its end
    uint64_t waited_ms = 0;     // what these had to wait, all together
  };
  Counts counts() const;

 private:
  struct Mark {
    uint64_t word = 0;        // 0: the lease has ended
    uint32_t place = 0;       // among the words
    uint64_t item_bytes = 0;  // 0: the lease has ended
    ServerTime end;           // ServerTime(): it has not
  };
  // A key that was changed is not leased again before this.
  struct Bar {
    ServerTime until;
    uint64_t length_ms;
  };

  using Marks = absl::flat_hash_map<uint64_t, Mark>;  // by key hash

  std::byte* WordAt(uint32_t place) const;
  void StoreHeader() GANNET_REQUIRES(mutex_);
  void TakeOut(Mark* mark) GANNET_REQUIRES(mutex_);
  void Erase(Marks::iterator mark) GANNET_REQUIRES(mutex_);
  void SetBar(KeyHash hash, ServerTime from) GANNET_REQUIRES(mutex_);

  const Options options_;
  const uint32_t words_;
  uint64_t incarnation_ = 0;
  PopularItems popular_;
  MarkedKeys marked_;  // and those that are announced; changed under the mutex

  mutable WordMutex mutex_;
  ItemLeaseHeader header_ GANNET_GUARDED_BY(mutex_){};
  bool grows_ GANNET_GUARDED_BY(mutex_) = false;  // the generation, when the header is stored next
  Marks marks_ GANNET_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, uint64_t> leased_ GANNET_GUARDED_BY(mutex_);  // word -> key hash
  absl::flat_hash_map<uint64_t, Bar> bars_ GANNET_GUARDED_BY(mutex_);         // by key hash
  std::vector<uint32_t> free_ GANNET_GUARDED_BY(mutex_);                      // places
  uint64_t leased_bytes_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t changes_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t waited_ms_ GANNET_GUARDED_BY(mutex_) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_ITEM_LEASES_H_
