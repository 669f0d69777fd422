#ifndef GANNET_TOOLS_KVLOAD_PHASE_H_
#define GANNET_TOOLS_KVLOAD_PHASE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/metrics.h"
#include "tools/kvload/operation.h"
#include "tools/kvload/worker.h"

namespace gannet::kvload {

// What a phase needs of the world outside.
struct Environment {
  // A backend for one thread, called on that thread.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(uint32_t thread)> connect;
  std::function<absl::StatusOr<ServerTotals>()> totals;
  // Called about once a second with a line of progress, and with an empty one at the end; may be
  // empty.
  std::function<void(std::string_view)> progress;
  // True once the user wants the run to end: what is in flight is finished, nothing more started.
  const std::atomic<bool>* interrupted = nullptr;
};

// PhaseResult::cut_short of a run that the user ended.
inline constexpr char kInterrupted[] = "interrupted";

struct PhasePlan {
  std::string name;         // for the progress line
  uint64_t operations = 0;  // over all threads, for the progress line
  double seconds = 0;       // after which it ends whatever is left; 0 = none
  double start_at = 0;      // since 1970; 0 = once all are connected
  uint32_t threads = 1;
  uint64_t target_ops = 0;  // a second, over all threads; 0 = closed loop
  Worker::Options worker;   // thread and interval_ns are filled in
  uint64_t seed = 0;        // of the values' noise
  std::function<std::unique_ptr<OperationSource>(uint32_t thread)> source;
  // What a thread does before, on the same connection and unmeasured; may be empty.
  std::function<std::unique_ptr<OperationSource>(uint32_t thread)> warm_up;
};

struct PhaseResult {
  Metrics metrics;
  double seconds = 0;  // from the first operation to the end of the last thread's, dead ones aside
  double dead_seconds = 0;     // without a server
  std::string cut_short;       // why it ended before its operations were done; empty: it did not
  uint64_t client_cpu_us = 0;  // of this process, meanwhile
  ServerTotals before;
  ServerTotals after;
  Spread spread;  // of the first thread's READs
};

// Runs one phase: connects all threads, lets them go at once, waits for them. The server's totals
// are taken while everyone is connected and nobody works, so neither connecting nor disconnecting
// is charged to the run. Fails when a thread cannot connect or the totals cannot be had. Errors of
// operations are counted in the result instead. A run that lost its server, or was interrupted, has
// a result of what was measured until then, which says so.
absl::StatusOr<PhaseResult> RunPhase(const PhasePlan& plan, const Environment& environment);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_PHASE_H_
