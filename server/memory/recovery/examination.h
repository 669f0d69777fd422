#ifndef GANNET_SERVER_MEMORY_RECOVERY_EXAMINATION_H_
#define GANNET_SERVER_MEMORY_RECOVERY_EXAMINATION_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "server/memory/recovery/survey.h"

namespace gannet {

// What is in a memory file, to the last slot and byte.
struct Examination {
  bool has_items = false;  // otherwise it is new, and the rest is zero
  bool stopped_in_order = false;
  uint64_t incarnation = 0;
  SurveyCounts counts;
  // slots_total = slots_empty + counts.items + unfinished + leftovers + dropped.
  uint64_t slots_total = 0;
  uint64_t slots_empty = 0;
  uint64_t intents = 0;  // writes that were under way
  // region_bytes = reserved_bytes + index_bytes + item_bytes + unused_bytes.
  uint64_t region_bytes = 0;
  uint64_t reserved_bytes = 0;  // before the heap: superblock, recovery area
  uint64_t index_bytes = 0;
  uint64_t item_bytes = 0;    // headers, keys and values, without the unused ends of their blocks
  uint64_t unused_bytes = 0;  // free, and ends of blocks
};

// Looks through the region of a memory file, as a start would, and changes nothing. Then checks
// that no two items share a byte, and that slots and bytes add up. REQUIRES: no Heap uses this
// mapping of the region. Errors: those of RecoveryArea::HasItems, Survey and Heap. Internal: a sum
// is wrong.
absl::StatusOr<Examination> Examine(std::span<std::byte> region);

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_RECOVERY_EXAMINATION_H_
