#ifndef GANNET_TOOLS_KVLOAD_PROGRESS_H_
#define GANNET_TOOLS_KVLOAD_PROGRESS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/kvload/histogram.h"
#include "tools/kvload/metrics.h"

namespace gannet::kvload {

// What happened in a part of a phase, which is a second long, or less at the phase's end.
struct Interval {
  double began_s = 0;  // since the phase began
  double ended_s = 0;
  uint64_t operations = 0;  // that were answered
  uint64_t errors = 0;
  uint64_t gets = 0;
  uint64_t get_reads = 0;  // READs of the GETs
  Histogram latency_ns;

  double PerSecond() const;
  double ReadsPerGet() const;
};

// Looks at the metrics of threads while they run, and says what they did since the last look. The
// threads do not notice, so looking does not disturb what they measure.
class ProgressMeter {
 public:
  // The metrics must outlive the meter.
  explicit ProgressMeter(std::vector<const Metrics*> threads) : threads_(std::move(threads)) {}

  // `elapsed_s`: since the phase began.
  Interval Look(double elapsed_s);

 private:
  const std::vector<const Metrics*> threads_;
  Interval total_;  // at the last look
};

// What a line of progress is about.
struct ProgressState {
  std::string_view phase;
  uint64_t finished = 0;    // operations so far
  uint64_t operations = 0;  // of the whole phase
  double seconds = 0;       // the phase's time limit; 0: none
};

// Returns a line without its end, as
//   load: 37 % of 100000, 152340/s, p99 81.2 us, 0 errors, ETA 4 s
std::string ProgressLine(const ProgressState& state, const Interval& interval);

// The columns of a CSV file, and a row. Both end with a newline.
std::string CsvHeader();
std::string CsvRow(std::string_view run, std::string_view phase, const Interval& interval);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_PROGRESS_H_
