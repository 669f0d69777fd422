#ifndef GANNET_SERVER_RPC_SLOW_LOG_H_
#define GANNET_SERVER_RPC_SLOW_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clocks.h"
#include "common/base/mutex.h"
#include "common/protocol/list_entries.h"
#include "common/protocol/message.h"

namespace gannet {

// The last requests that took long in the server: from when a worker took them up until it had the
// answer. Time that they waited for the worker, or on the way, is not in it. Thread safe.
class SlowLog {
 public:
  static constexpr size_t kEntriesMax = 128;

  // `clock` is the clock by which workers are polled.
  SlowLog(int64_t threshold_ns, BootClock clock)
      : threshold_ns_(threshold_ns), clock_(std::move(clock)) {}

  BootTime Now() const { return clock_.Now(); }
  bool IsSlow(int64_t ns) const { return ns >= threshold_ns_; }
  void Add(const SlowEntry& entry);
  // Returns what is remembered, the newest first.
  std::vector<SlowEntry> Entries() const;
  // Returns how many there were, also those that are forgotten.
  uint64_t count() const;

 private:
  const int64_t threshold_ns_;
  const BootClock clock_;
  mutable Mutex mutex_;
  std::vector<SlowEntry> ring_ GANNET_GUARDED_BY(mutex_);
  uint64_t count_ GANNET_GUARDED_BY(mutex_) = 0;
};

// Makes an entry. Cuts key and peer to fit.
SlowEntry MakeSlowEntry(const RequestHeader& request, std::string_view key, std::string_view peer,
                        int64_t ns);

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SLOW_LOG_H_
