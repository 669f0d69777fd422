#include "server/rpc/connection_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace gannet {

ConnectionLog::ConnectionLog()
    : ConnectionLog([](const std::string& line) { LOG(INFO) << line; }) {}

void ConnectionLog::Came(BootTime now, std::string_view what) {
  MutexLock lock(mutex_);
  ++came_;
  if (first_.empty()) first_ = what;
  WriteIfDue(now);
}

void ConnectionLog::Went(BootTime now, std::string_view what) {
  MutexLock lock(mutex_);
  ++went_;
  if (first_.empty()) first_ = what;
  WriteIfDue(now);
}

void ConnectionLog::Poll(BootTime now) {
  MutexLock lock(mutex_);
  WriteIfDue(now);
}

void ConnectionLog::WriteIfDue(BootTime now) {
  const uint64_t events = came_ + went_;
  if (events == 0 || now - last_line_ < kPeriodNs) return;
  last_line_ = now;
  std::string line = std::exchange(first_, {});
  if (events > 1) {
    absl::StrAppend(&line, " (and ", events - 1, " more; in all ", came_, " came and ", went_,
                    " went)");
  }
  came_ = went_ = 0;
  write_(line);
}

}  // namespace gannet
