#ifndef GANNET_TOOLS_KVLOAD_LOAD_RUNS_H_
#define GANNET_TOOLS_KVLOAD_LOAD_RUNS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "tools/kvload/backend.h"
#include "tools/kvload/options.h"
#include "tools/kvload/outputs.h"
#include "tools/kvload/report.h"
#include "tools/kvload/sweep.h"

namespace gannet::kvload {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitInterrupted = 130;

// What the program does once it knows its options: one run or several, with results on stdout and
// in files, and all else on stderr.
class LoadRuns {
 public:
  struct Context {
    std::function<absl::StatusOr<std::unique_ptr<StoreUnderLoad>>(const LoadOptions&)> open;
    const std::atomic<bool>* interrupted = nullptr;  // Environment::interrupted
    ProgressStyle progress_style = ProgressStyle::kNone;
  };

  explicit LoadRuns(Context context) : context_(std::move(context)) {}

  // Runs once, or once for each value of the sweep until a run fails or ends early. Shows what was
  // measured until then. Returns the program's exit code.
  int RunOnce(const LoadOptions& options);
  int RunSweep(const LoadOptions& options, const Sweep& sweep);

 private:
  absl::Status OpenFiles(const LoadOptions& options);
  // `name` names the run in a sweep.
  absl::StatusOr<Report> Measure(const LoadOptions& options, const std::string& name);
  int FailMeasuring(const absl::Status& status) const;

  const Context context_;
  CsvFile csv_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_LOAD_RUNS_H_
