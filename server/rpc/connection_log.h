#ifndef GANNET_SERVER_RPC_CONNECTION_LOG_H_
#define GANNET_SERVER_RPC_CONNECTION_LOG_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace gannet {

// Logs which connections came and went, in at most one line a second. So neither a client that
// reconnects again and again nor a thousand clients that connect at once can fill the log. The
// first event after a quiet second is logged at once. Further events within the second go into the
// next line, which says how many there were. Thread safe.
class ConnectionLog {
 public:
  static constexpr int64_t kPeriodNs = kNsPerSecond;
  using Write = std::function<void(const std::string& line)>;

  // `write` gets the lines. By default they go to the log.
  ConnectionLog();
  explicit ConnectionLog(Write write) : write_(std::move(write)) {}

  // `what` names the connection, and where it came from or why it went.
  void Came(BootTime now, std::string_view what);
  void Went(BootTime now, std::string_view what);
  // Writes the next line if it is due. Call it about once a second.
  void Poll(BootTime now);

 private:
  void WriteIfDue(BootTime now) GANNET_REQUIRES(mutex_);

  const Write write_;
  Mutex mutex_;
  BootTime last_line_ GANNET_GUARDED_BY(mutex_) = BootTime::FromNs(-kPeriodNs);
  // Events since the last line.
  uint64_t came_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t went_ GANNET_GUARDED_BY(mutex_) = 0;
  std::string first_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_CONNECTION_LOG_H_
