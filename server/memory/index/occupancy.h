#ifndef GANNET_SERVER_MEMORY_INDEX_OCCUPANCY_H_
#define GANNET_SERVER_MEMORY_INDEX_OCCUPANCY_H_

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/data_path_checks.h"
#include "common/layout/bucket.h"

namespace gannet {

// The slots of a bucket, a bit each: which are taken, and which of them hold keys whose home is the
// bucket before.
struct BucketSlots {
  uint16_t used = 0;
  uint16_t from_previous = 0;
};

// What the server remembers of its main buckets outside the region, four bytes each: the slots that
// are taken, and those of them whose keys have the bucket before as their home. So displacement
// never has to read an item to learn where else its key may be.
//
// Thread safety: a bucket's entry is guarded by the bucket's lock.
class Occupancy {
 public:
  explicit Occupancy(uint64_t buckets) : entries_(buckets) {}

  void Set(uint64_t bucket, BucketSlots slots) { entries_[bucket] = slots; }
  bool HasRoom(uint64_t bucket) const { return entries_[bucket].used != kAllSlots; }
  // REQUIRES: HasRoom(bucket).
  uint32_t FreeSlot(uint64_t bucket) const {
    GANNET_CHECK_DATA_PATH(HasRoom(bucket), "the bucket is full");
    return std::countr_one(entries_[bucket].used);
  }
  bool FromPrevious(uint64_t bucket, uint32_t slot) const {
    return entries_[bucket].from_previous >> slot & 1;
  }

  void Take(uint64_t bucket, uint32_t slot, bool from_previous) {
    entries_[bucket].used |= 1u << slot;
    if (from_previous) entries_[bucket].from_previous |= 1u << slot;
  }
  void Release(uint64_t bucket, uint32_t slot) {
    entries_[bucket].used &= ~(1u << slot);
    entries_[bucket].from_previous &= ~(1u << slot);
  }

  // Returns a slot whose key may also live in the next (or previous) bucket.
  std::optional<uint32_t> MovableToNext(uint64_t bucket) const {
    return First(entries_[bucket].used & ~entries_[bucket].from_previous);
  }
  std::optional<uint32_t> MovableToPrevious(uint64_t bucket) const {
    return First(entries_[bucket].from_previous);
  }

 private:
  static constexpr uint16_t kAllSlots = (1u << kSlotsPerBucket) - 1;
  static std::optional<uint32_t> First(uint32_t slots) {
    if (slots == 0) return std::nullopt;
    return std::countr_zero(slots);
  }

  std::vector<BucketSlots> entries_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_INDEX_OCCUPANCY_H_
