#ifndef SOFTVERBS_QP_ACCELERATOR_H_
#define SOFTVERBS_QP_ACCELERATOR_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "softverbs/qp/qp.h"
#include "softverbs/qp/scatter_gather.h"

namespace softverbs {

// Executes READ, WRITE and the atomics in the initiator, on the target's memory, if that is a file
// which both have mapped. It does only what the target's NIC would have done, with the same checks
// on words that the target publishes. It leaves undone what it cannot or may not do. Then the
// request goes to the target as a packet, and gets its data or its error there.
//
// How the target revokes a right: it changes a word (its queue pair's, or the region's key), and
// then waits until the initiator's in-flight word shows no operation that may have begun before.
// The initiator first marks itself in flight, and then reads those words. Both sides put a full
// barrier between the two steps, so at least one of them sees the other.

struct RemoteOperation {
  ibv_wr_opcode opcode;
  uint64_t remote_addr;
  uint32_t rkey;
  uint32_t length;
  uint64_t compare_add;
  uint64_t swap;
  const uint8_t* inline_data;  // null: the list
  SgeList local;
};

// Returns whether Accelerate could do such an operation, judging by the path only. False for SENDs
// and immediates, and if the region is not mapped (then this asks for it). REQUIRES: lock held.
bool CanAccelerate(Qp& qp, ibv_wr_opcode opcode, uint32_t rkey, uint32_t length)
    SV_REQUIRES(qp.lock);

// Executes the operation and returns true. If it returns false, at most a part of a READ's or
// WRITE's bytes was copied. Checks the local list too. REQUIRES: lock held; every earlier request
// is complete; the operation is as long as its list, 8 bytes for atomics.
bool Accelerate(Qp& qp, const RemoteOperation& operation) SV_REQUIRES(qp.lock);

// The same for a READ, in fewer instructions. Tests count them.
bool AccelerateRead(Qp& qp, uint64_t remote_addr, uint32_t rkey, uint32_t length, SgeList local)
    SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_ACCELERATOR_H_
