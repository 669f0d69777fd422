#include "tools/kvload/outputs.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gannet::kvload {
namespace {

absl::Status CheckOne(std::string_view flag, const std::string& path) {
  if (path.empty() || path == kStdout) return absl::OkStatus();
  const std::ofstream file(path, std::ios::app);
  if (file) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("--", std::string(flag), "=", path,
                                          ": cannot be written: ", std::strerror(errno)));
}

}  // namespace

void ShowProgress(ProgressStyle style, std::string_view line) {
  const int size = static_cast<int>(line.size());
  if (style == ProgressStyle::kOneLine) std::fprintf(stderr, "\r\033[K%.*s", size, line.data());
  if (style == ProgressStyle::kLines && size > 0) std::fprintf(stderr, "%.*s\n", size, line.data());
}

absl::Status CsvFile::Open(const std::string& path) {
  file_.open(path);
  file_ << CsvHeader() << std::flush;
  if (file_) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("--csv=", path, ": cannot be written"));
}

void CsvFile::Add(std::string_view run, std::string_view phase, const Interval& interval) {
  if (file_.is_open()) file_ << CsvRow(run, phase, interval) << std::flush;
}

absl::Status CheckWritable(const LoadOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckOne("json", options.json_file));
  GANNET_RETURN_IF_ERROR(CheckOne("csv", options.csv_file));
  GANNET_RETURN_IF_ERROR(CheckOne("percentiles", options.percentiles_file));
  if (options.svg_file.empty()) return absl::OkStatus();
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) {
    return absl::FailedPreconditionError("--svg needs gnuplot: apt-get install gnuplot-nox");
  }
  return CheckOne("svg", options.svg_file);
}

absl::Status Draw(const std::string& script) {
  FILE* const gnuplot = popen("gnuplot", "w");
  if (gnuplot == nullptr) return absl::InternalError("cannot run gnuplot");
  std::fputs(script.c_str(), gnuplot);
  return pclose(gnuplot) == 0 ? absl::OkStatus() : absl::InternalError("gnuplot failed");
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  if (path == kStdout) {
    std::fputs(text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? absl::OkStatus()
                                    : absl::InternalError("cannot write to stdout");
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", path));
}

}  // namespace gannet::kvload
