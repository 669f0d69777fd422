#ifndef GANNET_SERVER_MEMORY_STORE_POPULAR_ITEMS_H_
#define GANNET_SERVER_MEMORY_STORE_POPULAR_ITEMS_H_

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

  // Takes note of uses of the item at `offset`, whose version this is.
  void Note(uint64_t offset, uint64_t version, uint32_t uses);
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

  void ForgetSome() GANNET_REQUIRES(mutex_);

  const size_t chosen_max_;
  mutable Mutex mutex_;
  absl::flat_hash_map<uint64_t, Uses> uses_ GANNET_GUARDED_BY(mutex_);  // by offset
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_POPULAR_ITEMS_H_
