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
// 1. Whether the n-th request of the m-th queue pair meets a fault is a function of seed, m, n and
//    the kind of fault, of nothing else: threads and time do not matter, the seed gives it again.
// 2. With a plan active the accelerator is off, and regions are not shared with peers, so that all
//    requests pass through the engines, where the faults are.
// 3. Without a plan all of this costs one load of a constant per request that goes as packets, and
//    nothing on the accelerated path.

// Null when there are no faults. Plans are never freed: a reader needs no lock.
inline const Plan* Active();

// The plan of SOFTVERBS_FAULTS is active before main; a wrong one ends the process with status 2.
// 0 or EINVAL, then with `*error`. Both change the plan only: the calls of softverbs/control.h also
// bring the device into line with it.
int Set(const std::string& text, std::string* error);
void Clear();

// The number of a queue pair in rule 1: counts up from the start, or from the last Set.
uint32_t NextOrdinal();
void ResetOrdinals();

// Whether `kind` strikes event number `index` of `stream`; counted if it does.
bool Strikes(const Plan& plan, Kind kind, uint32_t stream, uint64_t index);
// The same, and for how many nanoseconds: 1 to the plan's.
std::optional<int64_t> StrikesFor(const Plan& plan, Kind kind, uint32_t stream, uint64_t index);
// For the n-th call in the process of something that has no queue pair.
std::optional<int64_t> StrikesNextCall(Kind kind);
// A number from the seed, for whatever else has to be chosen.
uint64_t Draw(const Plan& plan, Kind kind, uint32_t stream, uint64_t index);

// How often a kind struck.
uint64_t Count(Kind kind);
void CountOne(Kind kind);

// What befalls a send request, decided when it is posted.
struct RequestFaults {
  ibv_wc_status error = IBV_WC_SUCCESS;  // it fails with this, unexecuted
  int64_t delay_ns = 0;                  // it is executed so much later
  bool lost_ack = false;                 // executed, and reported as failed
  bool tear = false;                     // a READ in pieces, in any order
  int64_t tear_ns = 0;                   // that take so long together
  uint64_t tear_seed = 0;
};
// The number `index` of the queue pair's requests, `of_connection` of those since it was connected.
RequestFaults DecideRequest(const Plan& plan, uint32_t stream, uint64_t index,
                            uint64_t of_connection, ibv_wr_opcode opcode);

namespace internal {
extern constinit std::atomic<const Plan*> active;
}

// Acquire pairs with the release in Set: the plan is complete.
inline const Plan* Active() { return internal::active.load(std::memory_order_acquire); }

}  // namespace softverbs::fault

#endif  // SOFTVERBS_FAULT_FAULTS_H_
