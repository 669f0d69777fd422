#ifndef GANNET_SERVER_MEMORY_RECOVERY_SURVEY_ITEM_H_
#define GANNET_SERVER_MEMORY_RECOVERY_SURVEY_ITEM_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/layout/key_hash.h"
#include "common/layout/large_proof.h"
#include "common/layout/slot.h"

namespace gannet {

// How the items of a former run prove themselves: under that run's incarnation. If the next run was
// killed while it took them over, some prove themselves under its incarnation already.
struct SurveyPlace {
  std::span<const std::byte> region;
  uint64_t heap_offset = 0;
  uint64_t hash_seed = 0;
  uint64_t incarnation = 0;
  uint64_t taking_over = 0;  // 0: none
};

enum class ItemState : uint8_t {
  kLive,        // whole
  kSuperseded,  // whole, and was marked dead because another item takes its place
  kDead,        // deleted, or not yet live
  kTorn,        // its live bit is set, but it does not prove itself
  kNone,        // no item of this class can be there
};

struct SurveyedItem {
  ItemState state = ItemState::kNone;
  KeyHash hash{0};
  uint64_t bytes = 0;  // of header, key and value
  uint64_t version = 0;
  // Higher than all versions and placings in it.
  uint64_t versions_end = 0;
};

// Returns what item the slot leads to. `header` is the header to judge; nullptr: the item's own.
// The value of a large item is not looked at, as clients do not check it either.
SurveyedItem SurveyItem(const SurveyPlace& place, Slot slot,
                        const LargeItemHeader* header = nullptr);

// Returns whether the commit word proves the item under `incarnation`, if it is live.
bool SealedFor(const SurveyPlace& place, Slot slot, uint64_t incarnation);

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_RECOVERY_SURVEY_ITEM_H_
