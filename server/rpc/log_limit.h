#ifndef GANNET_SERVER_RPC_LOG_LIMIT_H_
#define GANNET_SERVER_RPC_LOG_LIMIT_H_

#include <cstdint>
#include <optional>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace gannet {

// Limits how often a line that strangers can cause is logged, so that it cannot fill the log. The
// first line after a period says how many were left out. Thread safe.
class LogLimit {
 public:
  // Allows at most `lines` in each period of `period_ns`.
  LogLimit(uint32_t lines, int64_t period_ns)
      : lines_max_(lines), period_ns_(period_ns), period_began_(BootTime() - period_ns) {}

  // Returns nullopt if this line must be left out. Otherwise returns how many were left out before
  // it.
  std::optional<uint64_t> Allow(BootTime now) {
    MutexLock lock(mutex_);
    if (now - period_began_ >= period_ns_) {
      period_began_ = now;
      lines_ = 0;
    }
    if (lines_ == lines_max_) {
      ++left_out_;
      return std::nullopt;
    }
    ++lines_;
    const uint64_t left_out = left_out_;
    left_out_ = 0;
    return left_out;
  }

 private:
  const uint32_t lines_max_;
  const int64_t period_ns_;
  Mutex mutex_;
  BootTime period_began_ GANNET_GUARDED_BY(mutex_);
  uint32_t lines_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ GANNET_GUARDED_BY(mutex_) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_LOG_LIMIT_H_
