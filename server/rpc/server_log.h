#ifndef GANNET_SERVER_RPC_SERVER_LOG_H_
#define GANNET_SERVER_RPC_SERVER_LOG_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/boot_time.h"
#include "glog/logging.h"
#include "server/rpc/connection_log.h"
#include "server/rpc/log_limit.h"

namespace gannet {

// The limits of one server's log. Each kind of line has its own, so the log stays readable whatever
// clients do. Thread safe.
struct ServerLog {
  static constexpr int64_t kNsPerMinute = 60 * kNsPerSecond;

  ConnectionLog connections;
  LogLimit refused_connections{1, kNsPerSecond};
  LogLimit refused_requests{1, kNsPerMinute};
  LogLimit broken_locks{1, kNsPerMinute};
  LogLimit different_sets{1, kNsPerMinute};
};

// Logs what was refused and why, if `limit` allows another line.
inline void LogRefusal(LogLimit* limit, BootTime now, const std::string& what,
                       std::string_view reason) {
  const std::optional<uint64_t> left_out = limit->Allow(now);
  if (!left_out) return;
  LOG(WARNING) << "refused " << what << ": " << reason
               << (*left_out > 0 ? absl::StrCat(" (and ", *left_out, " before it)") : "");
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SERVER_LOG_H_
