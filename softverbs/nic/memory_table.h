#ifndef SOFTVERBS_NIC_MEMORY_TABLE_H_
#define SOFTVERBS_NIC_MEMORY_TABLE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>

#include "softverbs/base/mutex.h"
#include "softverbs/nic/shared_tables.h"

namespace softverbs {

// The registered memory regions, by key. One number is both the local and the remote key. Resolve
// takes no lock. Registrations are published in the shared tables, so peers check the same words
// (accelerator.h). Only the local address stays private.
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

  // Returns the new key, or 0 if the table is full.
  uint32_t Add(const Entry& entry);
  // Makes the key invalid. Afterwards the caller waits for operations in progress, and calls Free.
  void Invalidate(uint32_t key);
  // Gives the key's place back. REQUIRES: Invalidate was called, and nobody can be using the entry.
  void Free(uint32_t key);

  // Returns a key that no region has, for a memory window, or 0 if the table is full. No region
  // gets this key with any low byte either, until it is returned.
  uint32_t TakeWindowKey();
  void ReturnWindowKey(uint32_t key);

  // Makes peers send packets instead of accessing the regions themselves. Called when a fault plan
  // becomes active.
  void StopSharing();

  // Why Resolve returns null.
  enum class Verdict { kGood, kNoKey, kOtherDomain, kNoRight, kOutside };
  Verdict Judge(uint32_t key, uint64_t addr, uint64_t length, uint32_t pd, uint32_t access) const;

  // Returns the local address of [addr, addr + length) of the region `key`. Returns null unless the
  // key is valid, belongs to protection domain `pd`, covers the range and has all the rights in
  // `access`.
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
  // Returns a free place, or kMaxMrs if there is none.
  uint32_t TakePlaceLocked() SV_REQUIRES(mutex_);

  SharedTables* const tables_;
  const std::unique_ptr<std::atomic<uint8_t*>[]> bases_;

  Mutex mutex_;
  // Places are reused oldest first, with a new count, so a stale key stays
  // invalid.
  std::deque<uint32_t> free_ SV_GUARDED_BY(mutex_);
  std::unique_ptr<uint32_t[]> counts_ SV_GUARDED_BY(mutex_);
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_MEMORY_TABLE_H_
