#ifndef GANNET_SERVER_MEMORY_HEAP_RUN_ALLOCATOR_H_
#define GANNET_SERVER_MEMORY_HEAP_RUN_ALLOCATOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/mutex.h"

namespace gannet {

// Hands out runs of units of one fixed memory: always the lowest free run that is long enough. It
// knows units by their numbers only, and never touches the memory.
//
// A bitmap says which units are free. Above it is a binary tree. Each node describes its part of
// the bitmap: the free units at its beginning, those at its end, and its longest free run. So the
// lowest run is found in one descent, and free neighbours merge without any work. (Go's page
// allocator does the same.) Takes two bits and three eighths of a byte a unit.
//
// Thread safety: all methods may be called from any thread.
class RunAllocator {
 public:
  // All units are free. REQUIRES: units < 2^32.
  explicit RunAllocator(uint64_t units);

  static constexpr uint64_t kAnywhere = UINT64_MAX;
  // Takes the lowest free run of `units` that begins below `end`, at a multiple of `alignment`. If
  // `alignment` is more than 1, the run may not be the lowest. Returns its first unit. REQUIRES:
  // units > 0, and alignment is a power of two.
  // Leaves the units free that KeepFree named, unless `also_kept`.
  std::optional<uint64_t> Take(uint64_t units, uint64_t alignment = 1, uint64_t end = kAnywhere,
                               bool also_kept = false);
  void KeepFree(uint64_t units) {
    MutexLock lock(mutex_);
    kept_units_ = units;
  }
  // Takes exactly these units. Returns false if one of them is not free.
  bool TakeAt(uint64_t first, uint64_t units);
  // Takes the free units of [first, first + units), and calls taken(first, units) for each run.
  template <class Taken>
  void TakeFree(uint64_t first, uint64_t units, Taken taken) {
    MutexLock lock(mutex_);
    const uint64_t end = first + units;
    for (uint64_t at = first; at < end;) {
      if (!IsFree(at)) {
        ++at;
        continue;
      }
      const uint64_t run_end = FreeEnd(at, end) < end ? FreeEnd(at, end) : end;
      Mark(at, run_end - at, /*free=*/false);
      taken(at, run_end - at);
      at = run_end;
    }
  }
  // REQUIRES: all these units were taken. They may be a part of one Take, or of several.
  void Free(uint64_t first, uint64_t units);
  // Frees the end of the run that begins at `first`, so that `units` are left. Returns how many
  // there were. REQUIRES: as UnitsAt; 0 < units <= UnitsAt(first).
  uint64_t Shrink(uint64_t first, uint64_t units);

  // Returns the length of the run that begins at `first`. REQUIRES: it was taken at once, and no
  // part of it was freed.
  uint64_t UnitsAt(uint64_t first) const;
  // Returns the begin and the end of a range that has these parts: the free units before the run
  // that `unit` is in, the run, and the runs and free units behind it until there are `units`. Or
  // none.
  struct Range {
    uint64_t begin;
    uint64_t end;
  };
  Range WholeRuns(uint64_t unit, uint64_t units) const;
  uint64_t units() const { return units_; }
  uint64_t free_units() const;
  uint64_t longest_free() const;

 private:
  static constexpr uint64_t kWordBits = 64;
  // Describes a part of the bitmap.
  struct Node {
    uint32_t first = 0;    // free units at its beginning
    uint32_t last = 0;     // at its end
    uint32_t longest = 0;  // the longest free run

    friend bool operator==(const Node&, const Node&) = default;
  };

  // Returns the lowest run of `units` that begins at `from` or later. REQUIRES: no free run begins
  // before `from` and ends behind it.
  std::optional<uint64_t> Find(uint64_t units, uint64_t from) const GANNET_REQUIRES(mutex_);
  std::optional<uint64_t> FindLowest(uint64_t units) const GANNET_REQUIRES(mutex_);
  std::optional<uint64_t> FindIn(uint64_t node, uint64_t begin, uint64_t length, uint64_t units,
                                 uint64_t from) const GANNET_REQUIRES(mutex_);
  std::optional<uint64_t> FindAligned(uint64_t units, uint64_t alignment) const
      GANNET_REQUIRES(mutex_);
  // Returns the end of the free run that `unit` is in. If that is `far_enough` or behind it, may
  // return any unit from `far_enough` on.
  uint64_t FreeEnd(uint64_t unit, uint64_t far_enough = kAnywhere) const GANNET_REQUIRES(mutex_);
  // Returns the end of the run that `unit` is in. The unit may be free.
  uint64_t RunEnd(uint64_t unit) const GANNET_REQUIRES(mutex_);
  bool IsFree(uint64_t unit) const GANNET_REQUIRES(mutex_) {
    return (free_[unit / kWordBits] >> (unit % kWordBits) & 1) != 0;
  }
  bool IsEnd(uint64_t unit) const GANNET_REQUIRES(mutex_) {
    return (ends_[unit / kWordBits] >> (unit % kWordBits) & 1) != 0;
  }
  void Mark(uint64_t first, uint64_t units, bool free) GANNET_REQUIRES(mutex_);
  void UpdateTree(uint64_t first_word, uint64_t last_word) GANNET_REQUIRES(mutex_);

  const uint64_t units_;
  const uint64_t leaves_;  // words of the bitmaps: a power of two
  mutable Mutex mutex_;
  std::vector<uint64_t> free_ GANNET_GUARDED_BY(mutex_);
  std::vector<uint64_t> ends_ GANNET_GUARDED_BY(mutex_);  // the last unit of each taken run
  // The root is node 1. The children of node i are nodes 2 i and 2 i + 1. The leaves are words.
  std::vector<Node> tree_ GANNET_GUARDED_BY(mutex_);
  uint64_t free_units_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t kept_units_ GANNET_GUARDED_BY(mutex_) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_HEAP_RUN_ALLOCATOR_H_
