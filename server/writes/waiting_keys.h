#ifndef GANNET_SERVER_WRITES_WAITING_KEYS_H_
#define GANNET_SERVER_WRITES_WAITING_KEYS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/layout/key_hash.h"

namespace gannet {

// Which keys have waiting changes, roughly: keys share entries by some bits of their hashes. Each
// entry has the ticket of the last change of one of its keys. Tickets are given and published in
// their order, so something may wait if that one is not published. The evictor spares such keys.
//
// Thread safety: Set by one thread at a time, and Published, too, with growing tickets, and while
// the lock of the change's key is held. The rest by those who hold the key's lock. That orders the
// stores and loads for one key, so the atomics are relaxed: whoever finds a ticket of another key,
// or a newer one, takes too many keys for waiting, and never too few.
class WaitingKeys {
 public:
  WaitingKeys() : last_(kEntries) {}

  // A change of the key waits from now on. Returns the ticket that was there before.
  uint64_t Set(KeyHash hash, uint64_t ticket) {
    Place place = At(hash);
    const uint64_t before = place.last();
    place.Set(ticket);
    return before;
  }
  // The same in two steps, for who looks at that ticket first.
  class Place {
   public:
    uint64_t last() const { return word_.load(std::memory_order_relaxed); }
    void Set(uint64_t ticket) { word_.store(ticket, std::memory_order_relaxed); }

   private:
    friend class WaitingKeys;
    explicit Place(std::atomic<uint64_t>& word) : word_(word) {}
    std::atomic<uint64_t>& word_;
  };
  Place At(KeyHash hash) { return Place(last_[hash.value() % kEntries]); }
  // The change of this ticket, and all before it, do not wait any more.
  void Published(uint64_t ticket) { published_.store(ticket, std::memory_order_relaxed); }

  // Returns the last ticket of a key that shares the entry. Nothing of the key waits behind it.
  uint64_t Last(KeyHash hash) const {
    return last_[hash.value() % kEntries].load(std::memory_order_relaxed);
  }
  bool MayWait(KeyHash hash) const { return !IsPublished(Last(hash)); }
  // Of a change of the key whose lock is held.
  bool IsPublished(uint64_t ticket) const {
    return ticket <= published_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kEntries = 65536;

  std::vector<std::atomic<uint64_t>> last_;
  std::atomic<uint64_t> published_{0};
};

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_WAITING_KEYS_H_
