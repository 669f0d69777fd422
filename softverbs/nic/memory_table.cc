#include "softverbs/nic/memory_table.h"

#include <sys/random.h>

#include "softverbs/base/mutex.h"

namespace softverbs {
namespace {

constexpr uint32_t kLowByte = (1u << kKeyByteBits) - 1;

// The count is cut off to the bits that are left for it.
constexpr uint32_t KeyOf(uint32_t index, uint32_t count) {
  const uint32_t high = count >> kKeyByteBits << (kKeyByteBits + kMrIndexBits);
  return high | index << kKeyByteBits | (count & kLowByte);
}

}  // namespace

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
  const uint32_t index = TakePlaceLocked();
  if (index == kMaxMrs) return 0;
  uint32_t& count = counts_[index];
  if (KeyOf(index, ++count) == 0) ++count;
  const uint32_t key = KeyOf(index, count);

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

uint32_t MemoryTable::TakePlaceLocked() {
  if (free_.empty()) return kMaxMrs;
  const uint32_t index = free_.front();
  free_.pop_front();
  return index;
}

uint32_t MemoryTable::TakeWindowKey() {
  const LockGuard guard(mutex_);
  const uint32_t index = TakePlaceLocked();
  if (index == kMaxMrs) return 0;
  uint32_t& count = counts_[index];
  count = (count | kLowByte) + 1;
  if (KeyOf(index, count) == 0) count += kLowByte + 1;
  return KeyOf(index, count);
}

void MemoryTable::ReturnWindowKey(uint32_t key) {
  const LockGuard guard(mutex_);
  counts_[MrIndex(key)] |= kLowByte;  // the next count has other bits above the low byte
  free_.push_back(MrIndex(key));
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

// The key may become invalid meanwhile. Then the verdict is of no more use to anybody.
MemoryTable::Verdict MemoryTable::Judge(uint32_t key, uint64_t addr, uint64_t length, uint32_t pd,
                                        uint32_t access) const {
  const SharedMr& mr = tables_->mrs[MrIndex(key)];
  if (key == 0 || mr.key.load(std::memory_order_acquire) != key) return Verdict::kNoKey;
  if (mr.pd.load(std::memory_order_relaxed) != pd) return Verdict::kOtherDomain;
  if ((mr.access.load(std::memory_order_relaxed) & access) != access) return Verdict::kNoRight;
  return Resolve(key, addr, length, pd, access) == nullptr ? Verdict::kOutside : Verdict::kGood;
}

void MemoryTable::Free(uint32_t key) {
  const LockGuard guard(mutex_);
  free_.push_back(MrIndex(key));
}

}  // namespace softverbs
