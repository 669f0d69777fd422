#ifndef GANNET_COMMON_PROGRAM_LOG_LINES_H_
#define GANNET_COMMON_PROGRAM_LOG_LINES_H_

#include <glog/logging.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"

namespace gannet {

// Writes the lines of this program's log: as text as glog has it, or as JSON, to stderr or to a
// file. As long as it lives, glog itself writes only what ends the process to stderr. One at a
// time.
//
// Lines that cannot be written are lost: their reader is gone, or there is no space. The first one
// is told of where somebody may still see it: on stderr if there is a file, else on stdout. Once
// lines can be written again, the first one says how many are missing.
//
// As JSON, a line is an object with `time` (RFC 3339, UTC), `level` (info, warning, error or
// fatal), `source` (file:line) and `message`.
//
// Thread safety: all methods may be called from any thread.
class LogLines : public google::LogSink {
 public:
  struct Options {
    std::string file;  // empty: stderr
    bool json = false;
  };
  // InvalidArgument: the file cannot be opened.
  static absl::StatusOr<std::unique_ptr<LogLines>> Start(const Options& options);
  ~LogLines() override;
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  // Opens the file anew before the next line, because somebody renamed it. If that fails, lines
  // still go into the renamed file. Signal handlers may call it.
  void RequestReopen() { reopen_.store(true, std::memory_order_relaxed); }

  void send(google::LogSeverity severity, const char* path, const char* file, int line,
            const google::LogMessageTime& time, const char* message, size_t bytes) override;

 private:
  LogLines(const Options& options, int fd) : options_(options), fd_(fd) {}
  void Reopen() GANNET_REQUIRES(mutex_);
  void Write(google::LogSeverity severity, const char* file, int line,
             const google::LogMessageTime& time, std::string_view message) GANNET_REQUIRES(mutex_);
  // Returns false with errno if it is lost.
  bool TryWrite(google::LogSeverity severity, const char* file, int line,
                const google::LogMessageTime& time, std::string_view message)
      GANNET_REQUIRES(mutex_);
  void TellThatLinesAreLost(int error) const;

  const Options options_;
  std::atomic<bool> reopen_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
  Mutex mutex_;
  int fd_ GANNET_GUARDED_BY(mutex_);
  uint64_t lost_ GANNET_GUARDED_BY(mutex_) = 0;  // lines since the last one that was written
  bool cut_ GANNET_GUARDED_BY(mutex_) = false;   // the last line that was written has no end
};

}  // namespace gannet

#endif  // GANNET_COMMON_PROGRAM_LOG_LINES_H_
