#ifndef SOFTVERBS_BASE_VERBS_LIMITS_H_
#define SOFTVERBS_BASE_VERBS_LIMITS_H_

#include <cstdint>

namespace softverbs {

// The device's limits, as query_device reports them and create calls enforce them.
constexpr uint32_t kMaxWr = 16384;  // of a queue pair's either queue, or a shared receive queue
constexpr uint32_t kMaxSge = 32;
constexpr uint32_t kMaxInline = 512;
constexpr uint32_t kMaxCqe = 1u << 22;
constexpr uint32_t kMaxMessage = 1u << 30;
constexpr uint32_t kMaxDatagram = 4096;     // the port's MTU, the longest datagram
constexpr uint32_t kMaxObjects = 1u << 16;  // CQs, PDs, SRQs, AHs, multicast groups: of each
constexpr int kCompVectors = 8;
// READs and atomics outstanding per queue pair, in each direction. MaxReadAtomic() returns
// SOFTVERBS_MAX_RD_ATOMIC, or the constant if that is not set. The constant is also the upper
// bound.
constexpr uint32_t kMaxReadAtomic = 128;
uint32_t MaxReadAtomic();

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_VERBS_LIMITS_H_
