#include "common/program/log_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace gannet {
namespace {

using Json = nlohmann::ordered_json;

constexpr mode_t kOwnerAndGroup = 0640;

int Open(const std::string& file) {
  return open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kOwnerAndGroup);
}

const char* LevelName(google::LogSeverity severity) {
  constexpr const char* kNames[] = {"info", "warning", "error", "fatal"};
  return severity >= 0 && severity < 4 ? kNames[severity] : "fatal";
}

std::string JsonLine(google::LogSeverity severity, const char* file, int line,
                     const google::LogMessageTime& time, std::string_view message) {
  const absl::Time at = absl::FromTimeT(time.timestamp()) + absl::Microseconds(time.usec());
  const Json entry = {{"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", at, absl::UTCTimeZone())},
                      {"level", LevelName(severity)},
                      {"source", absl::StrCat(file, ":", line)},
                      {"message", message}};
  // What is no UTF-8 becomes U+FFFD.
  return entry.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One write for a line, so that lines of several processes in one file do not mix. Returns false
// with errno if not all of it could be written. `cut`: the last line has no end.
bool WriteLine(int fd, std::string line, bool* cut) {
  if (*cut) line.insert(0, "\n");
  line += '\n';
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = write(fd, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      *cut |= done > 0;
      return false;
    }
    done += static_cast<size_t>(n);
  }
  *cut = false;
  return true;
}

// What is not written to stderr, glog would write to files of its own.
void LeaveLinesToSinks() {
  FLAGS_logtostderr = false;
  FLAGS_stderrthreshold = google::GLOG_FATAL;
  for (const auto severity :
       {google::GLOG_INFO, google::GLOG_WARNING, google::GLOG_ERROR, google::GLOG_FATAL}) {
    google::SetLogDestination(severity, "");
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LogLines>> LogLines::Start(const Options& options) {
  const int fd = options.file.empty() ? STDERR_FILENO : Open(options.file);
  if (fd < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot open the log file ", options.file, ": ", std::strerror(errno)));
  }
  std::unique_ptr<LogLines> lines(new LogLines(options, fd));
  LeaveLinesToSinks();
  google::AddLogSink(lines.get());
  return lines;
}

LogLines::~LogLines() {
  google::RemoveLogSink(this);
  FLAGS_logtostderr = true;
  MutexLock lock(mutex_);
  if (!options_.file.empty()) close(fd_);
}

void LogLines::send(google::LogSeverity severity, const char*, const char* file, int line,
                    const google::LogMessageTime& time, const char* message, size_t bytes) {
  // What ends the process glog itself writes to stderr, as text.
  if (severity == google::GLOG_FATAL && options_.file.empty() && !options_.json) return;
  MutexLock lock(mutex_);
  if (reopen_.exchange(false, std::memory_order_relaxed)) Reopen();
  Write(severity, file, line, time, {message, bytes});
}

void LogLines::Write(google::LogSeverity severity, const char* file, int line,
                     const google::LogMessageTime& time, std::string_view message) {
  if (lost_ > 0 && TryWrite(google::GLOG_ERROR, file, line, time,
                            absl::StrCat(lost_,
                                         " lines of this log are lost: they could not be "
                                         "written"))) {
    lost_ = 0;
  }
  if (lost_ == 0 && TryWrite(severity, file, line, time, message)) return;
  if (lost_++ == 0) TellThatLinesAreLost(errno);
}

bool LogLines::TryWrite(google::LogSeverity severity, const char* file, int line,
                        const google::LogMessageTime& time, std::string_view message) {
  return WriteLine(fd_,
                   options_.json
                       ? JsonLine(severity, file, line, time, message)
                       : ToString(severity, file, line, time, message.data(), message.size()),
                   &cut_);
}

void LogLines::TellThatLinesAreLost(int error) const {
  const bool file = !options_.file.empty();
  bool cut = false;
  WriteLine(file ? STDERR_FILENO : STDOUT_FILENO,
            absl::StrCat(program_invocation_short_name, ": cannot write its log",
                         file ? " " : " to stderr", options_.file, ": ", std::strerror(error),
                         "; goes on without"),
            &cut);
}

void LogLines::Reopen() {
  if (options_.file.empty()) return;
  const int fd = Open(options_.file);
  if (fd < 0) return;
  close(fd_);
  fd_ = fd;
}

}  // namespace gannet
