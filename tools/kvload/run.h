#ifndef GANNET_TOOLS_KVLOAD_RUN_H_
#define GANNET_TOOLS_KVLOAD_RUN_H_

#include "absl/status/statusor.h"
#include "tools/kvload/options.h"
#include "tools/kvload/phase.h"
#include "tools/kvload/report.h"

namespace gannet::kvload {

// Runs what the options ask for: a load, a YCSB workload, bare READs or a trace. The report's
// device and kind are the caller's to fill in. Fails when it could not be
// measured; errors of operations and wrong values are in the report.
absl::StatusOr<Report> Run(const Options& options, const Environment& environment);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_RUN_H_
