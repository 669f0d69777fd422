#ifndef SOFTVERBS_QP_ATOMIC_OF_NIC_H_
#define SOFTVERBS_QP_ATOMIC_OF_NIC_H_

#include <cstdint>

#include "softverbs/nic/packet.h"

namespace softverbs {

// Executes an atomic request as a NIC does whose atomics the CPU is not part of (IBV_ATOMIC_HCA):
// the word is read, compared and written, and what the CPU stores in between is lost. Returns the
// original value. REQUIRES: the engine's progress lock, which is the NIC's own lock here; the word
// is aligned.
uint64_t AtomicOfNic(uint64_t* word, const PacketHeader& request);

// What runs between the reading and the writing, for tests that want to be there. Null: others get
// a chance to run.
void SetAtomicWindow(void (*window)(void*), void* argument);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_ATOMIC_OF_NIC_H_
