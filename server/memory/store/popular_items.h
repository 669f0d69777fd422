#ifndef GANNET_SERVER_MEMORY_STORE_POPULAR_ITEMS_H_
#define GANNET_SERVER_MEMORY_STORE_POPULAR_ITEMS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"

namespace gannet {

// Which items are READ most and written least, by what clients tell (common/protocol/touch.h).
// Counts the uses of each content of the items at some places: an item that was written begins
// again. Items that are used least are forgotten when there are too many.
//
// Thread safety: all methods, from any thread.
class PopularItems {
 public:
  // An item is popular when so many READs of its present content were told.
  static constexpr uint64_t kUsesMin = 1000;

  explicit PopularItems(size_t chosen_max) : chosen_max_(chosen_max) {}

  // Returns whether a use of the item at `offset` was told a while ago, and notes that one was
  // told. Now and then it forgets all of them.
  bool WasTold(uint64_t offset);
  // Takes note of uses of the item at `offset`, whose version this is.
  void Note(uint64_t offset, uint64_t version, uint64_t uses);
  // Returns the places of the most popular items, the most popular first, and at most `chosen_max`.
  // They may have changed or gone meanwhile.
  std::vector<uint64_t> Choose() const;
  // Returns whether the uses at `offset` are of this version, so that nothing else lies there now.
  bool AreOf(uint64_t offset, uint64_t version) const;
  // Lets recent uses count more than earlier ones. Call it every few seconds.
  void Cool();

 private:
  struct Uses {
    uint64_t version = 0;
    uint64_t all = 0;     // of this content
    uint64_t recent = 0;  // halved by each Cool
  };
  static constexpr size_t kKeptPerChosen = 8;

  // A filter with a bit for each place, by a hash. It is forgotten when half of its bits are set.
  static constexpr size_t kFilterBits = size_t{1} << 18;

  void ForgetSome() GANNET_REQUIRES(mutex_);

  const size_t chosen_max_;
  // Relaxed: two threads at once may lose a bit, and then an item is told of once more in vain.
  std::array<std::atomic<uint64_t>, kFilterBits / 64> filter_{};
  std::atomic<size_t> filter_set_ = 0;
  mutable Mutex mutex_;
  absl::flat_hash_map<uint64_t, Uses> uses_ GANNET_GUARDED_BY(mutex_);  // by offset
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_POPULAR_ITEMS_H_
