#include "tools/kvload/load_runs.h"

#include <cstdio>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tools/kvload/percentiles.h"
#include "tools/kvload/run.h"

namespace gannet::kvload {
namespace {

int Fail(int code, const absl::Status& status) {
  std::fprintf(stderr, "kvload: %s\n", std::string(status.message()).c_str());
  return code;
}

// Says why the run ended early, if it did, and returns the exit code.
int ExitCodeOf(const Report& report) {
  if (!report.measured.cut_short.empty()) {
    std::fprintf(stderr, "kvload: %s\n", report.measured.cut_short.c_str());
    return report.measured.cut_short == kInterrupted ? kExitInterrupted : kExitFailed;
  }
  return WrongValues(report) == 0 && Errors(report) == 0 ? 0 : kExitFailed;
}

// Where tables go: with the JSON on stdout, nothing else is there.
std::FILE* ForPeople(const LoadOptions& options) {
  return options.json_file == kStdout ? stderr : stdout;
}

absl::Status WriteSweep(const LoadOptions& options, const Sweep& sweep,
                        const std::vector<Report>& reports) {
  if (!options.json_file.empty()) {
    GANNET_RETURN_IF_ERROR(WriteFile(options.json_file, SweepJson(sweep, reports)));
  }
  if (options.svg_file.empty() || reports.empty()) return absl::OkStatus();
  return Draw(SweepScript(sweep, reports, options.svg_file));
}

}  // namespace

absl::Status LoadRuns::OpenFiles(const LoadOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckWritable(options));
  return options.csv_file.empty() ? absl::OkStatus() : csv_.Open(options.csv_file);
}

int LoadRuns::FailMeasuring(const absl::Status& status) const {
  // Relaxed: it only matters whether Ctrl-C came.
  const bool interrupted = context_.interrupted->load(std::memory_order_relaxed);
  return Fail(interrupted ? kExitInterrupted : kExitFailed, status);
}

absl::StatusOr<Report> LoadRuns::Measure(const LoadOptions& options, const std::string& name) {
  GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<StoreUnderLoad> store, context_.open(options));
  const StoreUnderLoad::Transport transport = store->transport();
  std::fprintf(stderr, "kvload: backend=%s device=%s kind=%s\n",
               std::string(NameOf(options.backend)).c_str(), transport.device.c_str(),
               transport.kind.c_str());
  Environment environment;
  environment.connect = [&store](uint32_t thread) { return store->Connect(thread); };
  environment.totals = [&store] { return store->Totals(); };
  environment.interrupted = context_.interrupted;
  const ProgressStyle style = context_.progress_style;
  if (style != ProgressStyle::kNone) {
    environment.progress = [style](std::string_view line) { ShowProgress(style, line); };
  }
  if (!options.csv_file.empty()) {
    environment.each_second = [&](std::string_view phase, const Interval& interval) {
      csv_.Add(name, phase, interval);
    };
  }
  GANNET_ASSIGN_OR_RETURN(Report report, Run(options, environment));
  report.device = transport.device;
  report.kind = transport.kind;
  if (!options.percentiles_file.empty()) {
    GANNET_RETURN_IF_ERROR(
        WriteFile(absl::StrCat(options.percentiles_file, name.empty() ? "" : ".", name),
                  PercentilesText(report.measured.metrics.Latencies())));
  }
  return report;
}

int LoadRuns::RunOnce(const LoadOptions& options) {
  const absl::Status opened = OpenFiles(options);
  if (!opened.ok()) return Fail(kExitFailed, opened);
  const auto report = Measure(options, "");
  if (!report.ok()) return FailMeasuring(report.status());
  std::fputs(ToTable(*report).c_str(), ForPeople(options));
  if (!options.json_file.empty()) {
    const absl::Status written = WriteFile(options.json_file, ToJson(*report));
    if (!written.ok()) return Fail(kExitFailed, written);
  }
  return ExitCodeOf(*report);
}

int LoadRuns::RunSweep(const LoadOptions& options, const Sweep& sweep) {
  const absl::Status opened = OpenFiles(options);
  if (!opened.ok()) return Fail(kExitFailed, opened);
  std::vector<Report> reports;
  int code = 0;
  for (size_t i = 0; i < sweep.values.size() && code == 0; ++i) {
    auto report = Measure(OptionsOfRun(options, sweep, i), sweep.NameOf(i));
    if (!report.ok()) {
      code = FailMeasuring(report.status());
      break;
    }
    std::fprintf(ForPeople(options), "%s\n%s\n", sweep.NameOf(i).c_str(), ToTable(*report).c_str());
    code = ExitCodeOf(*report);
    reports.push_back(*std::move(report));
  }
  std::fputs(SweepTable(sweep, reports).c_str(), ForPeople(options));
  const absl::Status written = WriteSweep(options, sweep, reports);
  return written.ok() ? code : Fail(kExitFailed, written);
}

}  // namespace gannet::kvload
