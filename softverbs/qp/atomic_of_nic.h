#ifndef SOFTVERBS_QP_ATOMIC_OF_NIC_H_
#define SOFTVERBS_QP_ATOMIC_OF_NIC_H_

#include <cstdint>

#include "softverbs/nic/packet.h"

namespace softverbs {

// Executes an atomic request like a NIC whose atomics do not include the CPU (IBV_ATOMIC_HCA): it
// reads, compares and writes the word, and loses what the CPU stores in between. Returns the
// original value. REQUIRES: the engine's progress lock, which is the NIC's own lock here; the word
// is aligned.
uint64_t AtomicOfNic(uint64_t* word, const PacketHeader& request);

// Sets a function that runs between the read and the write, for tests. Null: other threads get a
// chance to run.
void SetAtomicWindow(void (*window)(void*), void* argument);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_ATOMIC_OF_NIC_H_
