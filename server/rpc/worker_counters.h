#ifndef GANNET_SERVER_RPC_WORKER_COUNTERS_H_
#define GANNET_SERVER_RPC_WORKER_COUNTERS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "common/protocol/client_report.h"
#include "common/protocol/opcode.h"
#include "common/protocol/rails_reply.h"
#include "server/sessions/locks/lock_service.h"

namespace gannet {

// A counter with one writer, the worker, and readers on any thread. All accesses are relaxed: no
// other memory depends on its value.
class Counter {
 public:
  void Add(uint64_t n) {
    // One writer needs no read-modify-write.
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void Set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct WorkerCounters {
  Counter rpcs;  // without heartbeats
  // The same requests by opcode. All opcodes are below kOpcodes.
  static constexpr size_t kOpcodes = 32;
  static_assert(kOpcodesEnd <= kOpcodes);
  std::array<Counter, kOpcodes> by_opcode;
  Counter heartbeats;
  Counter sessions;
  Counter connections;
  LockRailProgress lock_rail;
  Counter locks_broken;
  Counter locks_expired;
  Counter session_bytes;
  Counter reply_posts;
  Counter receive_posts;
  Counter send_completions;
  Counter refused_connections;
  Counter refused_requests;
  // What clients reported (common/protocol/client_report.h), since the start.
  Counter client_hits;
  Counter client_misses;
  Counter client_reads;
  Counter client_gets_by_rpc;
  std::array<std::array<Counter, LatencyBucket::kCount>, kLatencyKinds> client_latencies;
  // Requests by the rail that they came by, without heartbeats, if there are several.
  std::array<Counter, kRailsMax> rail_requests;
  Counter set_aside;  // requests, until those before them came
  // No client of this worker READs an index older than this generation.
  Counter index_generation;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_WORKER_COUNTERS_H_
