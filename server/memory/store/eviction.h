#ifndef GANNET_SERVER_MEMORY_STORE_EVICTION_H_
#define GANNET_SERVER_MEMORY_STORE_EVICTION_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/server_time.h"
#include "common/layout/key_hash.h"
#include "server/memory/store/heat.h"

namespace gannet {

// What the store remembers of keys that it evicted: their heat, until they come back. A table of
// two bytes an entry, in which a newer key overwrites an older one. An answer may be another key's.
//
// Thread safety: as Heat's.
class EvictedKeys {
 public:
  explicit EvictedKeys(uint64_t entries);

  void Remember(KeyHash hash, uint8_t heat);
  // Returns the key's heat and forgets it, or Heat::kNone if it is not known.
  uint8_t Take(KeyHash hash);
  // Cools the next `words` words of eight entries, in a circle.
  void Cool(uint64_t words);
  uint64_t words() const { return heats_.size(); }

 private:
  uint64_t EntryOf(KeyHash hash) const;
  static uint8_t CheckOf(KeyHash hash) { return static_cast<uint8_t>(hash.value()); }

  std::vector<uint64_t> checks_;
  std::vector<uint64_t> heats_;
  uint64_t cool_position_ = 0;  // only for the thread that cools
};

// How old a version is. Keeps some marks of when which version was the next one, so an age is right
// to about a hundredth of the time since the first mark.
class VersionAges {
 public:
  void Mark(ServerTime now, uint64_t next_version);
  // Returns how long ago the version was given.
  uint64_t AgeMs(ServerTime now, uint64_t version) const;

 private:
  static constexpr size_t kMarksMax = 128;
  struct Point {
    uint64_t version;
    uint64_t ms;
  };
  mutable Mutex mutex_;
  std::vector<Point> marks_ GANNET_GUARDED_BY(mutex_);
  uint64_t interval_ms_ GANNET_GUARDED_BY(mutex_) = 100;
};

// What a store that evicts keeps beside its region. The policy is LFU by sampling: among some items
// that lie near each other in the index, the one with the fewest uses, for its size, goes.
// Uses count half after kHalvedAfter uses for each item that the heap has room for. A key that
// comes back has the heat that it had.
//
// Thread safety: all methods may be called from any thread, but Cool by one at a time.
class Eviction {
 private:
  const uint64_t heap_bytes_;

 public:
  // "Has room for" counts items of the size of those that were written of late. So if sizes change,
  // the items of the former size soon give way.
  static constexpr uint64_t kHalvedAfter = 16;
  // Items from this length on take the room of many others, so they are treated differently.
  static constexpr bool IsLong(uint64_t item_bytes) { return item_bytes >= 32 << 10; }

  // `heats`: as Heat's memory.
  Eviction(uint64_t region_bytes, uint64_t heap_bytes, std::span<std::byte> heats)
      : heap_bytes_(heap_bytes),
        heat(region_bytes, heats),
        keys(region_bytes / kRegionBytesPerKey + 64) {}

  // The heap counts as full if so much of it is occupied. `kept_bytes` are kept free for others.
  uint64_t FullBytes(uint64_t kept_bytes) const {
    return heap_bytes_ - WatermarkBytes() - kept_bytes -
           unusable_bytes.load(std::memory_order_relaxed);
  }
  // So much is kept free.
  uint64_t WatermarkBytes() const { return heap_bytes_ / kWatermarkShare; }

  // Counts uses of the item at this offset.
  void Used(uint64_t offset, uint32_t uses) {
    heat.Add(offset, uses, static_cast<uint32_t>(Random()));
    uses_.fetch_add(uses, std::memory_order_relaxed);
  }
  // Counts what a peer says was used. Skips what is outside of the region. `touches` is a number of
  // Touch words (common/protocol/touch.h).
  void TouchAll(std::string_view touches, uint64_t region_bytes);
  // Notes that a key's item begins at `offset`. `old_heat` is that of the item it replaces, or
  // Heat::kNone if the key is new.
  void Installed(KeyHash hash, uint64_t offset, uint32_t size_class, uint8_t old_heat);
  void Evicted(KeyHash hash, uint8_t item_heat, uint64_t version);

  // Cools what is due. Does a bounded piece of it, and returns whether there is more.
  bool Cool();
  // Returns 64 bits, different ones each time.
  uint64_t Random();

  Heat heat;
  EvictedKeys keys;
  VersionAges ages;
  // Relaxed: statistics and estimates.
  std::atomic<uint64_t> items_evicted{0};
  std::atomic<uint64_t> evicted_by_writes{0};
  std::atomic<uint64_t> last_evicted_version{0};
  std::atomic<uint64_t> evicted_age_ms{0};
  // Free memory that no write can use, as far as is known: it lies in pieces that are too short.
  std::atomic<uint64_t> unusable_bytes{0};

 private:
  static constexpr uint64_t kWatermarkShare = 100;
  static constexpr uint64_t kRegionBytesPerKey = 512;

  static constexpr uint64_t kMeanOf = 1024;  // items, about

  std::atomic<uint64_t> uses_{0};
  // Bytes of the blocks of items written of late, times kMeanOf. A change that meets another one is
  // lost.
  std::atomic<uint64_t> mean_bytes_{256 * kMeanOf};
  std::atomic<uint64_t> random_{1};
  uint64_t uses_cooled_ = 0;  // only for the thread that cools
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_EVICTION_H_
