#ifndef GANNET_CLIENT_ENGINE_LARGE_ITEMS_H_
#define GANNET_CLIENT_ENGINE_LARGE_ITEMS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/data_path_checks.h"
#include "common/layout/item.h"
#include "common/layout/key_hash.h"
#include "common/layout/slot.h"

namespace gannet {

// The heads of large items that a client found at a server lately. A GET that has the head need not
// READ it first: it READs the value, whose length it knows, and then the commit word, which tells
// whether the head is still right. Like a cached location, a head is a guess.
//
// Sets of four, 64 bytes an entry. Four, because with one place for each hash half as many heads as
// there are places leave a fifth of the keys without theirs. Takes no memory before the first large
// item. One owner thread.
class LargeItems {
 public:
  // `bytes`: at most so much memory, but there is always room for a few heads.
  explicit LargeItems(uint64_t bytes)
      : set_count_(std::bit_floor(std::max<uint64_t>(bytes / sizeof(Set), kSetsMin))) {}

  // Returns the head of the item of this hash at this slot, or nullptr if it is not known. The
  // result is valid until the next Remember.
  const LargeItemHeader* Find(KeyHash hash, Slot slot) const {
    if (sets_.empty() || slot.empty()) return nullptr;
    const Set& set = sets_[hash.value() & (set_count_ - 1)];
    for (size_t way = 0; way < kWays; ++way) {
      if (set.slots[way] == slot && set.hashes[way] == hash.value()) return &set.heads[way];
    }
    return nullptr;
  }
  // Takes the place of what was known of the hash, or else of the four in turn. REQUIRES: the slot
  // is not empty.
  void Remember(KeyHash hash, Slot slot, const LargeItemHeader& head) {
    GANNET_CHECK_DATA_PATH(!slot.empty(), "no item is at an empty slot");
    if (sets_.empty()) sets_.resize(set_count_);
    Set& set = sets_[hash.value() & (set_count_ - 1)];
    const size_t way = WayFor(set, hash);
    set.hashes[way] = hash.value();
    set.slots[way] = slot;
    set.heads[way] = head;
  }
  // Forgets everything, because another server run has no item where it was.
  void Clear() { sets_.clear(); }

 private:
  static constexpr size_t kWays = 4;
  static constexpr uint64_t kSetsMin = 16;
  struct alignas(64) Set {
    std::array<uint64_t, kWays> hashes{};
    std::array<Slot, kWays> slots;  // empty in a free entry
    std::array<LargeItemHeader, kWays> heads{};
  };
  static_assert(sizeof(Set) == kWays * 64);

  // Returns the entry of the hash, a free one, or the next in turn.
  size_t WayFor(const Set& set, KeyHash hash) {
    for (size_t way = 0; way < kWays; ++way) {
      if (set.slots[way].empty() || set.hashes[way] == hash.value()) return way;
    }
    return next_++ % kWays;
  }

  const uint64_t set_count_;  // a power of two
  std::vector<Set> sets_;     // empty before the first large item
  size_t next_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_LARGE_ITEMS_H_
