#ifndef GANNET_TOOLS_KVLOAD_RUN_H_
#define GANNET_TOOLS_KVLOAD_RUN_H_

#include "absl/status/statusor.h"
#include "tools/kvload/options.h"
#include "tools/kvload/phase.h"
#include "tools/kvload/report.h"

namespace gannet::kvload {

// Runs what the options ask for: a load, a YCSB workload, bare READs or a trace. The caller fills
// in the report's device and kind. Fails if the run could not be measured. Failed operations and
// wrong values are in the report.
absl::StatusOr<Report> Run(const LoadOptions& options, const Environment& environment);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_RUN_H_
