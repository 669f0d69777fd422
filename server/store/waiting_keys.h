#ifndef GANNET_SERVER_STORE_WAITING_KEYS_H_
#define GANNET_SERVER_STORE_WAITING_KEYS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/layout/key_hash.h"

namespace gannet {

// Which keys have waiting changes, roughly: keys share counts by some bits of their hashes. The
// evictor spares such keys.
//
// Thread safety: all methods by those who hold the key's lock. That orders the counts of one key,
// so the atomics are relaxed.
class WaitingKeys {
 public:
  WaitingKeys() : counts_(kCounts) {}

  void Add(KeyHash hash) { CountOf(hash).fetch_add(1, std::memory_order_relaxed); }
  void Remove(KeyHash hash) { CountOf(hash).fetch_sub(1, std::memory_order_relaxed); }
  bool MayWait(KeyHash hash) const {
    return counts_[hash.value() % kCounts].load(std::memory_order_relaxed) != 0;
  }

 private:
  static constexpr size_t kCounts = 65536;
  std::atomic<uint32_t>& CountOf(KeyHash hash) { return counts_[hash.value() % kCounts]; }

  std::vector<std::atomic<uint32_t>> counts_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_WAITING_KEYS_H_
