#ifndef GANNET_TOOLS_KVLOAD_LIVE_COUNT_H_
#define GANNET_TOOLS_KVLOAD_LIVE_COUNT_H_

#include <atomic>
#include <cstdint>

namespace gannet::kvload {

// A number that one thread counts, and that other threads may look at meanwhile. It costs the
// counting thread what a plain number would cost.
//
// All accesses are relaxed: a look during the run is only shown, and the exact numbers are read
// after their thread has arrived at a gate (PhaseRun::Arrive) or was joined.
class LiveCount {
 public:
  LiveCount(uint64_t value = 0) : value_(value) {}  // NOLINT: it is a number
  LiveCount(const LiveCount& other) : value_(other.value()) {}
  LiveCount& operator=(const LiveCount& other) {
    value_.store(other.value(), std::memory_order_relaxed);
    return *this;
  }

  uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  operator uint64_t() const { return value(); }  // NOLINT: it is a number
  // REQUIRES: only one thread calls these.
  LiveCount& operator+=(uint64_t added) {
    value_.store(value() + added, std::memory_order_relaxed);
    return *this;
  }
  LiveCount& operator++() { return *this += 1; }

 private:
  std::atomic<uint64_t> value_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_LIVE_COUNT_H_
