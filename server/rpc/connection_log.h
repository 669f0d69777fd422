#ifndef GANNET_SERVER_RPC_CONNECTION_LOG_H_
#define GANNET_SERVER_RPC_CONNECTION_LOG_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace gannet {

// Tells the log which connections came and went, in at most one line a second: whoever connects and
// goes again and again, or a thousand clients that come at once, cannot fill the log. The first
// event after a quiet second is told at once; what follows within the second goes into the next
// line, which says how many there were. Thread safe.
class ConnectionLog {
 public:
  static constexpr int64_t kPeriodNs = kNsPerSecond;
  using Write = std::function<void(const std::string& line)>;

  // `write` gets the lines; by default the log.
  ConnectionLog();
  explicit ConnectionLog(Write write) : write_(std::move(write)) {}

  // `what` says which one, and from where or why.
  void Came(int64_t now_ns, std::string_view what);
  void Went(int64_t now_ns, std::string_view what);
  // Writes what waits, if its time has come. To be called about once a second.
  void Poll(int64_t now_ns);

 private:
  void WriteIfDue(int64_t now_ns) GANNET_REQUIRES(mutex_);

  const Write write_;
  Mutex mutex_;
  int64_t last_line_ns_ GANNET_GUARDED_BY(mutex_) = -kPeriodNs;
  // Since the last line.
  uint64_t came_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t went_ GANNET_GUARDED_BY(mutex_) = 0;
  std::string first_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_CONNECTION_LOG_H_
