#ifndef SOFTVERBS_CONTROL_H_
#define SOFTVERBS_CONTROL_H_

#include <stddef.h>
#include <stdint.h>

// What softverbs offers beyond verbs: faults on demand, and a simulation in one thread. A program
// that includes this links the drop-in library first: softverbs::softverbs in CMake. For faults in
// other programs use SOFTVERBS_FAULTS.
// softverbs/DESIGN.md has the grammar of fault plans, and what each fault does.

#ifdef __cplusplus
extern "C" {
#endif

struct ibv_qp;

// Activates a fault plan and replaces the present one. Returns 0, or EINVAL with an `error` (may be
// null) that says which part is wrong and what is accepted. Counts start at zero. Thread safe.
int softverbs_set_faults(const char* plan, char* error, size_t error_size);
// Ends all faults, and brings all ports up. What the plan holds back comes now, or at its time.
void softverbs_clear_faults(void);
// Takes down the port with this number in this process, or brings it up (softverbs/DESIGN.md:
// port_down). Ports are counted from 0 over all devices: with one port a device, by its number.
// Returns 0, or EINVAL if there is no such port.
int softverbs_set_port(int port, int up);
// Returns how often the fault with this name of the grammar struck in this process.
uint64_t softverbs_fault_count(const char* name);

// Returns how often the application did what it must not do. Always counted, and with strict=1 also
// reported on stderr.
uint64_t softverbs_misuse_count(void);

// Returns the READs and atomics of the queue pair (an RC one of this library) that were sent to its
// peer and not yet answered. At most its max_rd_atomic, whatever was posted. Thread safe.
uint32_t softverbs_reads_in_flight(struct ibv_qp* qp);

// Returns how many READs this process posted through the device with this number, so that a test
// sees which of several devices carries them. Always 0 without SOFTVERBS_STATS=1.
uint64_t softverbs_reads_posted(int device);

// With atomics=hca, calls `window` between the read and the write of every atomic. Null: calls
// nothing.
void softverbs_set_atomic_window(void (*window)(void*), void* argument);

// --- Simulation. Call all of it from one thread, which must not block in any verbs or rdma_cm
// call: no synchronous ids, no waiting for events that are not there.

// Turns this process's device into a simulated one, or begins a new run. Clock and random choices
// start anew. Returns 0, or EBUSY if the device was used before the first call.
int softverbs_simulate(uint64_t seed);
// Lets one thing happen: a packet is executed, a timer runs, or a connection makes a step. The seed
// decides which. If only timers are left, time jumps to the first one. Returns 0 if nothing is
// left.
int softverbs_step(void);
// The same, but time does not jump beyond `ns`. Returns 0 if nothing is left to happen before `ns`;
// then it is `ns` now, or later if it already was. For programs that wait for times of their own.
int softverbs_step_until(int64_t ns);
// Queue pairs that are made from now on are those of this node: below 8, and 0 when a run begins.
void softverbs_simulate_node(uint32_t node);
// While it is cut, packets from queue pairs of one node to those of another wait. Connection
// requests do not. Nothing is cut when a run begins.
void softverbs_simulate_cut(uint32_t from, uint32_t to, int is_cut);
// Returns the simulation's clock, or CLOCK_MONOTONIC without a simulation.
int64_t softverbs_now_ns(void);
// Calls `log` with a line of text for each step. Null: calls nothing.
void softverbs_set_event_log(void (*log)(void*, const char*), void* argument);

#ifdef __cplusplus
}
#endif

#endif  // SOFTVERBS_CONTROL_H_
