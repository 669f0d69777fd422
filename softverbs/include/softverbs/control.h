#ifndef SOFTVERBS_CONTROL_H_
#define SOFTVERBS_CONTROL_H_

#include <stddef.h>
#include <stdint.h>

// What softverbs can do beyond verbs: faults on demand, and a simulation in one thread. A program
// that includes this links gannet::softverbs. Faults of other programs: SOFTVERBS_FAULTS.
// docs/softverbs.md has the grammar of fault plans, and what each fault does.

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_qp;

// Makes a fault plan active, in place of the one there was. 0, or EINVAL with `error` (may be
// null) saying which part is wrong and what is accepted. Counts start at zero. Thread safe.
int softverbs_set_faults(const char* plan, char* error, size_t error_size);
// No more faults. What the plan holds back comes now, or at its time.
void softverbs_clear_faults(void);
// How often the fault with this name of the grammar struck in this process.
uint64_t softverbs_fault_count(const char* name);

// What an application must not do, and did: counted always, said on stderr with strict=1.
uint64_t softverbs_misuse_count(void);

// READs and atomics of the queue pair, an RC one of this library, that were sent to its peer and
// not yet answered: at most its max_rd_atomic, whatever was posted. Thread safe.
uint32_t softverbs_reads_in_flight(struct ibv_qp* qp);

// With atomics=hca: called between the reading and the writing of every atomic. Null: nothing.
void softverbs_set_atomic_window(void (*window)(void*), void* argument);

// --- Simulation. All of it from one thread, which must not block in any verbs or rdma_cm call: no
// synchronous ids, no waiting for events that are not there.

// Turns this process's device into a simulated one, or begins a new run: the clock and all random
// choices start anew. 0, or EBUSY when the device was used before the first call.
int softverbs_simulate(uint64_t seed);
// Lets one thing happen: a packet is executed, a timer runs, a connection makes a step; which, is
// chosen by the seed. When only timers are left, time jumps to the first. 0: nothing is left.
int softverbs_step(void);
// The same, but time does not jump beyond `ns`. 0: nothing is left to happen before `ns`, and it is
// `ns` now, or already was later. For programs that have times of their own to wait for.
int softverbs_step_until(int64_t ns);
// The simulation's clock, CLOCK_MONOTONIC outside of one.
int64_t softverbs_now_ns(void);
// Is called with a line of text for each step. Null: nobody.
void softverbs_set_event_log(void (*log)(void*, const char*), void* argument);

#ifdef __cplusplus
}
#endif

#endif  // SOFTVERBS_CONTROL_H_
