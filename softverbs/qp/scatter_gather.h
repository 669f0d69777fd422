#ifndef SOFTVERBS_QP_SCATTER_GATHER_H_
#define SOFTVERBS_QP_SCATTER_GATHER_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "softverbs/nic/memory_table.h"

namespace softverbs {

// Functions that move bytes between a message and local memory described by a scatter/gather list.
// Every key is checked at the moment of the copy. They return false if a key does not (or no
// longer) allow it.

struct SgeList {
  const ibv_sge* sges;
  uint32_t count;
};

inline uint64_t TotalLength(SgeList list) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < list.count; ++i) total += list.sges[i].length;
  return total;
}

// Copies bytes [offset, offset + size) of the list's memory to `to`.
bool Gather(const MemoryTable& memory, uint32_t pd, SgeList list, uint64_t offset, uint32_t size,
            uint8_t* to);

// Copies `size` bytes from `from` to the list's memory, starting at byte `offset`.
bool Scatter(const MemoryTable& memory, uint32_t pd, SgeList list, uint64_t offset, uint32_t size,
             const uint8_t* from);

// The same, and returns false if the memory is not mapped any more. Costs a system call for each
// piece.
bool ScatterIfMapped(const MemoryTable& memory, uint32_t pd, SgeList list, uint32_t size,
                     const uint8_t* from);

// Returns whether every element may be read (or written, if `access` is IBV_ACCESS_LOCAL_WRITE).
bool Allowed(const MemoryTable& memory, uint32_t pd, SgeList list, uint32_t access);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_SCATTER_GATHER_H_
