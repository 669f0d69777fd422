#include "softverbs/qp/scatter_gather.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

// The kernel copies, so that memory that is not mapped is an error and no signal.
bool CopyIfMapped(uint8_t* to, const uint8_t* from, size_t bytes) {
  const iovec source{const_cast<uint8_t*>(from), bytes};
  const iovec target{to, bytes};
  const int error_of_caller = errno;
  const ssize_t copied = process_vm_writev(getpid(), &source, 1, &target, 1, 0);
  const bool refused = copied < 0 && errno != EFAULT;  // by a filter of system calls
  errno = error_of_caller;
  if (refused) CopyToShared(to, from, bytes);
  return refused || copied == static_cast<ssize_t>(bytes);
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

bool ScatterIfMapped(const MemoryTable& memory, uint32_t pd, SgeList list, uint32_t size,
                     const uint8_t* from) {
  bool mapped = true;
  const bool allowed = ForEachPiece(memory, pd, list, 0, size, IBV_ACCESS_LOCAL_WRITE,
                                    [&](uint8_t* local, uint32_t at, uint32_t bytes) {
                                      mapped = mapped && CopyIfMapped(local, from + at, bytes);
                                    });
  return allowed && mapped;
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
