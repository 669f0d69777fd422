#ifndef SOFTVERBS_QP_ACCELERATOR_H_
#define SOFTVERBS_QP_ACCELERATOR_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "softverbs/qp/qp.h"
#include "softverbs/qp/scatter_gather.h"

namespace softverbs {

// Executes READ, WRITE and the atomics in the initiator, on the target's memory, when that is a
// file both have mapped. It only ever does what the target's NIC would have done: the same checks
// on words the target publishes. Whatever it cannot do, or may not do, it leaves undone, and the
// request goes to the target as a packet, where it gets its data or its error.
//
// How the target revokes: it changes a word (its queue pair's, or the region's key), then waits
// until the initiator's in-flight word shows no operation that may have begun before. The initiator
// first marks itself in flight, then reads those words. Both sides put a full barrier between, so
// one of them sees the other.

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

// Could Accelerate do such an operation, as far as the path goes? False for SENDs and immediates,
// and when the region is not mapped (it is asked for then). REQUIRES: lock held.
bool CanAccelerate(Qp& qp, ibv_wr_opcode opcode, uint32_t rkey, uint32_t length);

// True when the operation was executed; false leaves at most a part of a READ's or WRITE's bytes
// copied. Checks the local list too. REQUIRES: lock held; every earlier request is complete; the
// operation is as long as its list, 8 bytes for atomics.
bool Accelerate(Qp& qp, const RemoteOperation& operation);

// The same for a READ, in fewer instructions: what the tests count.
bool AccelerateRead(Qp& qp, uint64_t remote_addr, uint32_t rkey, uint32_t length, SgeList local);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_ACCELERATOR_H_
