#ifndef SOFTVERBS_NIC_IMPORTED_REGIONS_H_
#define SOFTVERBS_NIC_IMPORTED_REGIONS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <unordered_set>

#include "softverbs/base/mutex.h"
#include "softverbs/nic/shared_memory.h"

namespace softverbs {

// The peer's memory that this process has mapped, by the ids under which the peer exports it.
// Find is for the data path and takes no lock. A region that it returns stays mapped while the
// caller's queue pair is marked in flight, because a thread that retires a region waits for that
// before it unmaps it. For other callers the result is only a hint.
class ImportedRegions {
 public:
  struct Region {
    uint8_t* base = nullptr;  // null: not mapped
    uint64_t size = 0;
    bool writable = false;
  };

  Region Find(uint32_t id) const {
    const Slot& slot = slots_[id % kSlots];
    // Sequentially consistent against Retire: either Retire's caller sees this thread in flight, or
    // this thread sees that the region is gone. Also acquires what Install stored before the id.
    if (id == 0 || slot.id.load(std::memory_order_seq_cst) != id) return {};
    return {slot.base.load(std::memory_order_relaxed), slot.size.load(std::memory_order_relaxed),
            slot.writable.load(std::memory_order_relaxed)};
  }

  // Returns true the first time for each id. Then the caller asks the peer for the region.
  bool NoteRequested(uint32_t id);

  // Maps the whole file behind `fd`. Returns false if that fails or the place is taken. Then
  // packets are used for this region.
  bool Install(uint32_t id, int fd, bool writable);

  // Removes the region and returns its mapping. The caller destroys the mapping, which unmaps it,
  // once no operation can be using it any more.
  Mapping Retire(uint32_t id);

 private:
  static constexpr uint32_t kSlots = 256;
  struct Slot {
    std::atomic<uint32_t> id{0};  // 0: free; stored last, cleared first
    std::atomic<uint8_t*> base{nullptr};
    std::atomic<uint64_t> size{0};
    std::atomic<bool> writable{false};
    Mapping mapping;  // guarded by the mutex below
  };

  std::array<Slot, kSlots> slots_;
  Mutex mutex_;
  std::unordered_set<uint32_t> requested_ SV_GUARDED_BY(mutex_);
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_IMPORTED_REGIONS_H_
