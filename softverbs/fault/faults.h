#ifndef SOFTVERBS_FAULT_FAULTS_H_
#define SOFTVERBS_FAULT_FAULTS_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "softverbs/fault/plan.h"

namespace softverbs::fault {

// The active plan of the process, and its decisions.
//
// 1. Whether the n-th request of the m-th queue pair meets a fault depends only on the seed, m, n
//    and the kind of fault, and not on threads or time. So the seed reproduces it.
// 2. While a plan is active, the accelerator is off, and regions are not shared with peers. So all
//    requests pass through the engines, where the faults are.
// 3. Without a plan, all of this costs one load of a constant per request that goes as packets, and
//    nothing on the accelerated path.

// Returns null if there are no faults. Plans are never freed, so a reader needs no lock.
inline const Plan* Active();

// Sets the plan. Returns 0, or EINVAL with `*error`. The plan of SOFTVERBS_FAULTS is active before
// main; a wrong one ends the process with status 2. Set and Clear change only the plan; the calls
// of softverbs/control.h also adapt the device to it.
int Set(const std::string& text, std::string* error);
void Clear();

// Returns the number of a queue pair in rule 1. Counts up from the start, or from the last Set.
uint32_t NextOrdinal();
void ResetOrdinals();

// Returns whether `kind` strikes event number `index` of `stream`, and counts it if so.
bool Strikes(const Plan& plan, FaultKind kind, uint32_t stream, uint64_t index);
// The same, but returns for how many nanoseconds: 1 to the plan's time.
std::optional<int64_t> StrikesFor(const Plan& plan, FaultKind kind, uint32_t stream,
                                  uint64_t index);
// The same for the n-th call in this process of something that has no queue pair.
std::optional<int64_t> StrikesNextCall(FaultKind kind);
// Returns a number drawn from the seed, for other choices.
uint64_t Draw(const Plan& plan, FaultKind kind, uint32_t stream, uint64_t index);

// Returns how often a kind struck.
uint64_t Count(FaultKind kind);
void CountOne(FaultKind kind);

// The faults of a send request, decided when it is posted.
struct RequestFaults {
  ibv_wc_status error = IBV_WC_SUCCESS;  // fails with this, unexecuted
  int64_t delay_ns = 0;                  // is executed so much later
  bool lost_ack = false;                 // is executed, but reported as failed
  bool tear = false;                     // the READ is executed in pieces, in any order
  int64_t tear_ns = 0;                   // the pieces take so long together
  uint64_t tear_seed = 0;
};
// Decides the faults of request number `index` of the queue pair. `of_connection` is its number
// since the queue pair was connected. REQUIRES: the request is for a peer.
RequestFaults DecideRequest(const Plan& plan, uint32_t stream, uint64_t index,
                            uint64_t of_connection, ibv_wr_opcode opcode);

namespace internal {
extern constinit std::atomic<const Plan*> active;
}

// Acquire pairs with the release in Set, so the plan is complete.
inline const Plan* Active() { return internal::active.load(std::memory_order_acquire); }

}  // namespace softverbs::fault

#endif  // SOFTVERBS_FAULT_FAULTS_H_
