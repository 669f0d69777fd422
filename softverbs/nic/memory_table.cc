#include "softverbs/nic/memory_table.h"

#include <sys/random.h>

#include "softverbs/base/mutex.h"

namespace softverbs {

MemoryTable::MemoryTable(SharedTables* tables)
    : tables_(tables),
      bases_(new std::atomic<uint8_t*>[kMaxMrs]()),
      counts_(new uint32_t[kMaxMrs]()) {
  // Keys start at random in each process, so the keys of a dead process are invalid in the next
  // one.
  uint32_t start = 0;
  if (getrandom(&start, sizeof(start), 0) != sizeof(start)) start = 1;
  for (uint32_t index = 0; index < kMaxMrs; ++index) {
    counts_[index] = start;
    free_.push_back(index);
  }
}

uint32_t MemoryTable::Add(const Entry& entry) {
  const LockGuard guard(mutex_);
  if (free_.empty()) return 0;
  const uint32_t index = free_.front();
  free_.pop_front();
  uint32_t count = ++counts_[index] & ((1u << kCountBits) - 1);
  if (count == 0) count = ++counts_[index] & ((1u << kCountBits) - 1);
  const uint32_t key = count << kMrIndexBits | index;

  SharedMr& mr = tables_->mrs[index];
  bases_[index].store(entry.base, std::memory_order_relaxed);
  mr.access.store(entry.access, std::memory_order_relaxed);
  mr.pd.store(entry.pd, std::memory_order_relaxed);
  mr.region.store(entry.region, std::memory_order_relaxed);
  mr.iova.store(entry.iova, std::memory_order_relaxed);
  mr.length.store(entry.length, std::memory_order_relaxed);
  mr.region_offset.store(entry.region_offset, std::memory_order_relaxed);
  mr.key.store(key, std::memory_order_release);  // the fields above become valid with it
  return key;
}

void MemoryTable::Invalidate(uint32_t key) {
  // Sequentially consistent against the in-flight words: either the caller sees the initiator in
  // flight, or the initiator sees 0 here.
  tables_->mrs[MrIndex(key)].key.exchange(0, std::memory_order_seq_cst);
}

void MemoryTable::StopSharing() {
  // Relaxed: it does not matter when a peer sees this. From then on it sends packets.
  for (uint32_t index = 0; index < kMaxMrs; ++index) {
    tables_->mrs[index].region.store(0, std::memory_order_relaxed);
  }
}

void MemoryTable::Free(uint32_t key) {
  const LockGuard guard(mutex_);
  free_.push_back(MrIndex(key));
}

}  // namespace softverbs
