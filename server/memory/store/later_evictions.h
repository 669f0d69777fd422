#ifndef GANNET_SERVER_MEMORY_STORE_LATER_EVICTIONS_H_
#define GANNET_SERVER_MEMORY_STORE_LATER_EVICTIONS_H_

#include <atomic>
#include <cstdint>

#include "common/layout/key_hash.h"
#include "server/log/changes/change.h"

namespace gannet {

// Where the evictions of a store wait until their records are safe, as other changes do. They go in
// the order in which they were recorded.
//
// Thread safety: any thread. Whoever calls MayWait or Evict holds the lock of the key.
class LaterEvictions {
 public:
  virtual ~LaterEvictions() = default;
  // Whether a change of the key may wait. Then its item is not evicted.
  virtual bool MayWait(KeyHash hash) const = 0;
  // Records the deletion of an item, whose block has so many bytes. The item stays until the record
  // is safe. Returns false if it cannot be recorded now.
  virtual bool Evict(KeyHash hash, const Change& deletion, uint64_t block_bytes) = 0;

  // Bytes of the blocks of all items that were ever given to Evict, and of those that have gone.
  uint64_t begun_bytes() const { return begun_bytes_.load(std::memory_order_relaxed); }
  uint64_t gone_bytes() const { return gone_bytes_.load(std::memory_order_relaxed); }
  uint64_t waiting_bytes() const {
    const uint64_t gone = gone_bytes();
    const uint64_t begun = begun_bytes();
    return begun > gone ? begun - gone : 0;
  }

 protected:
  void Begun(uint64_t bytes) { begun_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void Gone(uint64_t bytes) { gone_bytes_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> begun_bytes_{0};  // relaxed: hints
  std::atomic<uint64_t> gone_bytes_{0};
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_LATER_EVICTIONS_H_
