#ifndef GANNET_TOOLS_KVLOAD_OUTPUTS_H_
#define GANNET_TOOLS_KVLOAD_OUTPUTS_H_

#include <fstream>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "tools/kvload/options.h"
#include "tools/kvload/progress.h"

namespace gannet::kvload {

// The path of --json that means stdout.
inline constexpr char kStdout[] = "-";

// How progress is shown on stderr: not at all, in one line that changes, or a line a second.
enum class ProgressStyle { kNone, kOneLine, kLines };
void ShowProgress(ProgressStyle style, std::string_view line);

// A file with a row for each second of a run. The rows are there at once, so that others can
// follow.
class CsvFile {
 public:
  // Begins the file with its header.
  absl::Status Open(const std::string& path);
  // Does nothing if the file was not opened. `run` names the run in a sweep.
  void Add(std::string_view run, std::string_view phase, const Interval& interval);

 private:
  std::ofstream file_;
};

// Checks before the run that all files of the options can be written, and that gnuplot is there if
// it is to draw. Leaves empty files.
absl::Status CheckWritable(const LoadOptions& options);

// Runs gnuplot with this script. REQUIRES: the process ignores SIGPIPE (SurviveLostOutputs):
// gnuplot may end before it has read everything.
absl::Status Draw(const std::string& script);

absl::Status WriteFile(const std::string& path, const std::string& text);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_OUTPUTS_H_
