#ifndef SOFTVERBS_NIC_MEMORY_TABLE_H_
#define SOFTVERBS_NIC_MEMORY_TABLE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "softverbs/nic/shared_tables.h"

namespace softverbs {

// What reg_mr registered: local and remote keys (one number serves as both) and what they open.
// Resolve takes no lock. Registration is published in the shared tables, so peers check the very
// same words (accelerator.h); only the local address stays private.
class MemoryTable {
 public:
  struct Entry {
    uint8_t* base;
    uint64_t iova;
    uint64_t length;
    uint32_t access;
    uint32_t pd;
    uint32_t region;
    uint64_t region_offset;
  };

  explicit MemoryTable(SharedTables* tables);

  // The new key, or 0 when the table is full.
  uint32_t Add(const Entry& entry);
  // The key is invalid on return; the caller then waits for operations in progress before Free.
  void Invalidate(uint32_t key);
  // Gives the key's place back. REQUIRES: Invalidate, and nobody can be using the entry.
  void Free(uint32_t key);

  // Peers execute nothing on the regions themselves any more: a fault plan became active.
  void StopSharing();

  // Where [addr, addr + length) of the region `key` is in this process; null unless the key is
  // valid, of protection domain `pd`, covers the range and has all the rights in `access`.
  uint8_t* Resolve(uint32_t key, uint64_t addr, uint64_t length, uint32_t pd,
                   uint32_t access) const {
    const SharedMr& mr = tables_->mrs[MrIndex(key)];
    // Acquire pairs with the release store in Add: the other fields are those of this key.
    if (key == 0 || mr.key.load(std::memory_order_acquire) != key) return nullptr;
    if (mr.pd.load(std::memory_order_relaxed) != pd ||
        (mr.access.load(std::memory_order_relaxed) & access) != access) {
      return nullptr;
    }
    const uint64_t offset = addr - mr.iova.load(std::memory_order_relaxed);
    const uint64_t size = mr.length.load(std::memory_order_relaxed);
    if (offset > size || length > size - offset) return nullptr;
    return bases_[MrIndex(key)].load(std::memory_order_relaxed) + offset;
  }

 private:
  static constexpr uint32_t kCountBits = 32 - kMrIndexBits;

  SharedTables* const tables_;
  const std::unique_ptr<std::atomic<uint8_t*>[]> bases_;

  std::mutex mutex_;
  // Guarded by mutex_. Places are reused oldest first, with a new count: a stale key stays wrong.
  std::deque<uint32_t> free_;
  std::unique_ptr<uint32_t[]> counts_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_MEMORY_TABLE_H_
