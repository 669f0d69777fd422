#ifndef GANNET_CLIENT_ENGINE_LARGE_ITEMS_H_
#define GANNET_CLIENT_ENGINE_LARGE_ITEMS_H_

#include <array>
#include <cstdint>
#include <memory>

#include "common/layout/item.h"
#include "common/layout/key_hash.h"
#include "common/layout/slot.h"

namespace gannet {

// The heads of large items that a client found at a server lately. A GET that has the head need not
// READ it first: it READs the value, whose length it knows, and then the commit word, which tells
// whether the head is still right. Like a cached location, a head is a guess.
//
// Direct mapped, 64 bytes an entry. Takes no memory before the first large item. One owner thread.
class LargeItems {
 public:
  // Returns the head of the item of this hash at this slot, or nullptr if it is not known.
  const LargeItemHeader* Find(KeyHash hash, Slot slot) const {
    if (entries_ == nullptr) return nullptr;
    const Entry& entry = (*entries_)[hash.value() % kEntries];
    return entry.hash == hash.value() && entry.slot == slot ? &entry.head : nullptr;
  }
  void Remember(KeyHash hash, Slot slot, const LargeItemHeader& head) {
    if (entries_ == nullptr) entries_ = std::make_unique<Entries>();
    (*entries_)[hash.value() % kEntries] = {hash.value(), slot, head};
  }

 private:
  static constexpr size_t kEntries = 1024;
  struct Entry {
    uint64_t hash = 0;
    Slot slot;  // empty in a free entry
    LargeItemHeader head;
  };
  using Entries = std::array<Entry, kEntries>;
  std::unique_ptr<Entries> entries_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_LARGE_ITEMS_H_
