#ifndef GANNET_TOOLS_KVLOAD_SWEEP_H_
#define GANNET_TOOLS_KVLOAD_SWEEP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/kvload/options.h"
#include "tools/kvload/report.h"

namespace gannet::kvload {

// Several runs that differ in one flag.
struct Sweep {
  std::string flag;  // threads, depth or value_size
  std::vector<uint64_t> values;

  static constexpr size_t kValuesMax = 64;

  // Returns "threads=4", for example. REQUIRES: i < values.size().
  std::string NameOf(size_t i) const;
};

// Parses FLAG:VALUE,VALUE,... Returns InvalidArgument for anything else.
absl::StatusOr<Sweep> ParseSweep(std::string_view text);

// Returns InvalidArgument if the options of a run are wrong.
absl::Status Validate(const LoadOptions& options, const Sweep& sweep);

// Returns the options of run i. The first run loads the records for all, unless their size is what
// changes. REQUIRES: i < sweep.values.size().
LoadOptions OptionsOfRun(const LoadOptions& options, const Sweep& sweep, size_t i);

// The result of the runs so far, for people and for machines. REQUIRES: reports are those of the
// sweep's first values.
std::string SweepTable(const Sweep& sweep, const std::vector<Report>& reports);
std::string SweepJson(const Sweep& sweep, const std::vector<Report>& reports);
// Returns what gnuplot must do to draw throughput and latencies to this file. REQUIRES: there is a
// report.
std::string SweepScript(const Sweep& sweep, const std::vector<Report>& reports,
                        std::string_view svg_file);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_SWEEP_H_
