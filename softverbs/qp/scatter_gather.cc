#include "softverbs/qp/scatter_gather.h"

#include <algorithm>
#include <cstring>

#include "softverbs/base/shared_copy.h"

namespace softverbs {
namespace {

// Calls visit(local, message_offset, bytes) for the pieces of [offset, offset + size).
template <class Visit>
bool ForEachPiece(const MemoryTable& memory, uint32_t pd, SgeList list, uint64_t offset,
                  uint32_t size, uint32_t access, Visit&& visit) {
  uint32_t moved = 0;
  for (uint32_t i = 0; i < list.count && moved < size; ++i) {
    const ibv_sge& sge = list.sges[i];
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const uint32_t piece =
        static_cast<uint32_t>(std::min<uint64_t>(sge.length - offset, size - moved));
    uint8_t* local = memory.Resolve(sge.lkey, sge.addr + offset, piece, pd, access);
    if (local == nullptr) return false;
    visit(local, moved, piece);
    moved += piece;
    offset = 0;
  }
  return moved == size;
}

}  // namespace

bool Gather(const MemoryTable& memory, uint32_t pd, SgeList list, uint64_t offset, uint32_t size,
            uint8_t* to) {
  return ForEachPiece(memory, pd, list, offset, size, 0,
                      [to](const uint8_t* local, uint32_t at, uint32_t bytes) {
                        CopyFromShared(to + at, local, bytes);
                      });
}

bool Scatter(const MemoryTable& memory, uint32_t pd, SgeList list, uint64_t offset, uint32_t size,
             const uint8_t* from) {
  return ForEachPiece(memory, pd, list, offset, size, IBV_ACCESS_LOCAL_WRITE,
                      [from](uint8_t* local, uint32_t at, uint32_t bytes) {
                        CopyToShared(local, from + at, bytes);
                      });
}

bool Allowed(const MemoryTable& memory, uint32_t pd, SgeList list, uint32_t access) {
  for (uint32_t i = 0; i < list.count; ++i) {
    const ibv_sge& sge = list.sges[i];
    // IBTA: the key of an empty element is not checked.
    if (sge.length != 0 && memory.Resolve(sge.lkey, sge.addr, sge.length, pd, access) == nullptr) {
      return false;
    }
  }
  return true;
}

}  // namespace softverbs
