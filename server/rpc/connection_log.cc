#include "server/rpc/connection_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace gannet {

ConnectionLog::ConnectionLog()
    : ConnectionLog([](const std::string& line) { LOG(INFO) << line; }) {}

void ConnectionLog::Came(int64_t now_ns, std::string_view what) {
  MutexLock lock(mutex_);
  ++came_;
  if (first_.empty()) first_ = what;
  WriteIfDue(now_ns);
}

void ConnectionLog::Went(int64_t now_ns, std::string_view what) {
  MutexLock lock(mutex_);
  ++went_;
  if (first_.empty()) first_ = what;
  WriteIfDue(now_ns);
}

void ConnectionLog::Poll(int64_t now_ns) {
  MutexLock lock(mutex_);
  WriteIfDue(now_ns);
}

void ConnectionLog::WriteIfDue(int64_t now_ns) {
  const uint64_t events = came_ + went_;
  if (events == 0 || now_ns - last_line_ns_ < kPeriodNs) return;
  last_line_ns_ = now_ns;
  std::string line = std::exchange(first_, {});
  if (events > 1) {
    absl::StrAppend(&line, " (and ", events - 1, " more; in all ", came_, " came and ", went_,
                    " went)");
  }
  came_ = went_ = 0;
  write_(line);
}

}  // namespace gannet
