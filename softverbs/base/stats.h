#ifndef SOFTVERBS_BASE_STATS_H_
#define SOFTVERBS_BASE_STATS_H_

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "softverbs/base/devices.h"

namespace softverbs {

// Counts what the application asked of the device, and its acknowledgements, if SOFTVERBS_STATS is
// set to something other than 0. Prints the counts on stderr as one line of JSON when the process
// exits. A forked child starts at zero.
struct Stats {
  struct PerOpcode {
    std::atomic<uint64_t> posts{0};
    std::atomic<uint64_t> bytes{0};
    std::atomic<uint64_t> accelerated{0};  // executed by the initiator itself
  };
  PerOpcode sends[IBV_WR_ATOMIC_FETCH_AND_ADD + 1];
  std::array<std::atomic<uint64_t>, kMaxDevices> reads_of{};  // posts, by device
  std::atomic<uint64_t> receives{0};
  std::atomic<uint64_t> completions{0};  // polled
  std::atomic<uint64_t> acks{0};         // packets sent that only acknowledge
};

extern const bool stats_enabled;
extern Stats stats;

// Arranges the printing. Called when the device is opened first.
void StartStats();

// Relaxed everywhere: only sums matter.
inline void Count(std::atomic<uint64_t>& counter, uint64_t amount = 1) {
  if (stats_enabled) counter.fetch_add(amount, std::memory_order_relaxed);
}

// REQUIRES: stats_enabled.
inline void CountPost(int device, ibv_wr_opcode opcode, uint64_t bytes) {
  if (opcode == IBV_WR_SEND_WITH_INV) opcode = IBV_WR_SEND;
  if (opcode > IBV_WR_ATOMIC_FETCH_AND_ADD) return;  // binds and invalidations move nothing
  Count(stats.sends[opcode].posts);
  Count(stats.sends[opcode].bytes, bytes);
  if (opcode == IBV_WR_RDMA_READ) Count(stats.reads_of[static_cast<size_t>(device)]);
}

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_STATS_H_
