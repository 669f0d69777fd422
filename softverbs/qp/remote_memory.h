#ifndef SOFTVERBS_QP_REMOTE_MEMORY_H_
#define SOFTVERBS_QP_REMOTE_MEMORY_H_

#include <cstdint>

#include "softverbs/nic/nic.h"
#include "softverbs/nic/window_table.h"
#include "softverbs/qp/qp.h"

namespace softverbs {

// The memory that a peer's request names by a remote key: a part of a region, or of a memory
// window. While this object lives, a window is not invalidated. Use the memory only meanwhile, and
// take no queue pair's lock.
class RemoteMemory {
 public:
  RemoteMemory(const Qp& qp, uint32_t rkey, uint64_t addr, uint64_t length, unsigned access)
      : at_(qp.nic->memory().Resolve(rkey, addr, length, qp.pd_id, access)) {
    if (at_ != nullptr) [[likely]]
      return;
    at_ = qp.nic->windows().Resolve(rkey, addr, length, qp.number, qp.pd_id, access, &hold_);
  }
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  // Returns null if the key does not allow the access.
  uint8_t* at() const { return at_; }

 private:
  WindowTable::Hold hold_;
  uint8_t* at_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_QP_REMOTE_MEMORY_H_
