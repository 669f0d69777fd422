// Implements softverbs/include/softverbs/control.h.

#include "softverbs/include/softverbs/control.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "softverbs/base/devices.h"
#include "softverbs/base/export.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/stats.h"
#include "softverbs/cq/held_completions.h"
#include "softverbs/fault/faults.h"
#include "softverbs/fault/nodes.h"
#include "softverbs/fault/strict.h"
#include "softverbs/nic/nic.h"
#include "softverbs/qp/atomic_of_nic.h"
#include "softverbs/qp/requester.h"
#include "softverbs/simulation/simulated_loop.h"

namespace softverbs {
namespace {

// Null before the first softverbs_simulate. Belongs to the simulation's one thread.
SimulatedLoop* simulated_loop = nullptr;

int Simulate(uint64_t seed) {
  if (simulated_loop == nullptr) {
    auto* loop = new SimulatedLoop;  // never destroyed, as every loop
    if (!Loop::Install(loop)) {
      delete loop;
      return EBUSY;
    }
    simulated_loop = loop;
  }
  simulated_loop->Restart(seed);
  return 0;
}

// From now on, peers reach the regions registered so far only by packets, for as long as those stay
// registered, because only packets pass the faults.
int SetFaults(const char* plan, std::string* error) {
  if (const int result = fault::Set(plan, error)) return result;
  if (Nic* nic = Nic::Existing()) {
    nic->memory().StopSharing();
    nic->ports().FollowPlan();
  }
  return 0;
}

// Also delivers the completions that the plan delayed.
void ClearFaults() {
  fault::Clear();
  if (Nic* nic = Nic::Existing()) nic->ports().FollowPlan();
  HeldCompletions::Get().ReleaseAll();
}

int SetPort(int port, bool up) {
  if (port < 0 || port >= PortCount()) return EINVAL;
  Nic* nic = Nic::Get();
  if (nic == nullptr) return errno;
  nic->ports().Set(port, up);
  return 0;
}

}  // namespace
}  // namespace softverbs

SOFTVERBS_EXPORT int softverbs_set_faults(const char* plan, char* error, size_t error_size) {
  std::string why;
  const int result = softverbs::SetFaults(plan, &why);
  if (result != 0 && error != nullptr) snprintf(error, error_size, "%s", why.c_str());
  return result;
}

SOFTVERBS_EXPORT void softverbs_clear_faults() { softverbs::ClearFaults(); }

SOFTVERBS_EXPORT int softverbs_set_port(int port, int up) {
  return softverbs::SetPort(port, up != 0);
}

SOFTVERBS_EXPORT uint64_t softverbs_fault_count(const char* name) {
  using softverbs::fault::FaultKind;
  for (size_t i = 0; i < softverbs::fault::kKinds; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    if (strcmp(name, softverbs::fault::Name(kind)) == 0) return softverbs::fault::Count(kind);
  }
  return 0;
}

SOFTVERBS_EXPORT uint64_t softverbs_misuse_count() { return softverbs::fault::MisuseCount(); }

SOFTVERBS_EXPORT uint32_t softverbs_reads_in_flight(ibv_qp* ibv) {
  softverbs::Qp& qp = *softverbs::Qp::From(ibv);
  const softverbs::LockGuard guard(qp.lock);
  return softverbs::CountFetchesInFlight(qp);
}

SOFTVERBS_EXPORT uint64_t softverbs_reads_posted(int device) {
  if (device < 0 || device >= softverbs::kMaxDevices) return 0;
  const auto& counter = softverbs::stats.reads_of[static_cast<size_t>(device)];
  return counter.load(std::memory_order_relaxed);
}

SOFTVERBS_EXPORT void softverbs_set_atomic_window(void (*window)(void*), void* argument) {
  softverbs::SetAtomicWindow(window, argument);
}

SOFTVERBS_EXPORT int softverbs_simulate(uint64_t seed) { return softverbs::Simulate(seed); }

SOFTVERBS_EXPORT int softverbs_step() {
  return softverbs::simulated_loop != nullptr && softverbs::simulated_loop->Step() ? 1 : 0;
}

SOFTVERBS_EXPORT int softverbs_step_until(int64_t ns) {
  return softverbs::simulated_loop != nullptr && softverbs::simulated_loop->Step(ns) ? 1 : 0;
}

SOFTVERBS_EXPORT void softverbs_simulate_node(uint32_t node) {
  softverbs::fault::nodes.present = node % softverbs::fault::Nodes::kMax;
}

SOFTVERBS_EXPORT void softverbs_simulate_cut(uint32_t from, uint32_t to, int is_cut) {
  constexpr uint32_t kMax = softverbs::fault::Nodes::kMax;
  softverbs::fault::nodes.Cut(from % kMax, to % kMax, is_cut != 0);
}

SOFTVERBS_EXPORT int64_t softverbs_now_ns() { return softverbs::MonotonicNs(); }

SOFTVERBS_EXPORT void softverbs_set_event_log(void (*log)(void*, const char*), void* argument) {
  if (softverbs::simulated_loop != nullptr) softverbs::simulated_loop->SetLog(log, argument);
}
