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
#include "tools/kvload/operation_loop.h"
#include "tools/kvload/progress.h"
#include "tools/kvload/rate.h"

namespace gannet::kvload {

// What a phase needs from its caller.
struct Environment {
  // Returns a backend for one thread. Called on that thread.
  std::function<absl::StatusOr<std::unique_ptr<Backend>>(uint32_t thread)> connect;
  std::function<absl::StatusOr<ServerTotals>()> totals;
  // Called about once a second with a progress line, and with an empty line at the end. May be
  // empty.
  std::function<void(std::string_view)> progress;
  // Called about once a second, and at the end, with what happened since the last call. May be
  // empty.
  std::function<void(std::string_view phase, const Interval&)> each_second;
  // Becomes true when the user wants the run to end. The phase then finishes the operations in
  // flight and starts no more.
  const std::atomic<bool>* interrupted = nullptr;
};

// The value of PhaseResult::cut_short if the user ended the run.
inline constexpr char kInterrupted[] = "interrupted";

struct PhasePlan {
  std::string name;         // for the progress line
  uint64_t operations = 0;  // of all threads together, for the progress line
  double seconds = 0;       // time limit; 0: none
  double start_at = 0;      // seconds since 1970; 0: as soon as all threads are connected
  uint32_t threads = 1;
  Rate rate;                    // of all threads together
  OperationLoop::Options loop;  // the phase fills in thread, threads and rate
  uint64_t seed = 0;            // seed of the random bytes in values
  std::function<std::unique_ptr<OperationSource>(uint32_t thread)> source;
  // The operations that a thread runs before the measurement, on the same connection. May be empty.
  std::function<std::unique_ptr<OperationSource>(uint32_t thread)> warm_up;
  // How long each thread then runs operations of this source, unmeasured, at the phase's first
  // rate. 0: not at all.
  double warm_seconds = 0;
  std::function<std::unique_ptr<OperationSource>(uint32_t thread)> warm_load;
};

struct PhaseResult {
  Metrics metrics;
  double seconds = 0;          // from the first operation to the last, without dead_seconds
  double dead_seconds = 0;     // time without a server
  std::string cut_short;       // why the run ended early; empty if it did not
  uint64_t client_cpu_us = 0;  // CPU time that this process used during the run
  ServerTotals before;
  ServerTotals after;
  Spread spread;  // spread of the first thread's READs
};

// Runs one phase: connects all threads, starts them together, and waits for them. Reads the
// server's totals while all threads are connected and none works, so that neither connecting nor
// disconnecting is charged to the run.
//
// Fails if a thread cannot connect, or if the totals are not available. Failed operations are
// counted in the result instead. If the run loses its server or is interrupted, returns what was
// measured until then, and sets cut_short.
absl::StatusOr<PhaseResult> RunPhase(const PhasePlan& plan, const Environment& environment);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_PHASE_H_
