#ifndef GANNET_SERVER_RPC_LOG_LIMIT_H_
#define GANNET_SERVER_RPC_LOG_LIMIT_H_

#include <cstdint>
#include <optional>

#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace gannet {

// Keeps a line that strangers can cause from filling the log: so many a second, and the next one
// after a pause says how many were left out. Thread safe.
class LogLimit {
 public:
  static constexpr uint32_t kLinesPerSecond = 10;

  // nullopt: not this one. Otherwise how many were left out before it.
  std::optional<uint64_t> Allow(int64_t now_ns) {
    MutexLock lock(mutex_);
    if (now_ns - second_began_ns_ >= kNsPerSecond) {
      second_began_ns_ = now_ns;
      lines_ = 0;
    }
    if (lines_ == kLinesPerSecond) {
      ++left_out_;
      return std::nullopt;
    }
    ++lines_;
    const uint64_t left_out = left_out_;
    left_out_ = 0;
    return left_out;
  }

 private:
  Mutex mutex_;
  int64_t second_began_ns_ GANNET_GUARDED_BY(mutex_) = -kNsPerSecond;
  uint32_t lines_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ GANNET_GUARDED_BY(mutex_) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_LOG_LIMIT_H_
