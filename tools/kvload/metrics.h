#ifndef GANNET_TOOLS_KVLOAD_METRICS_H_
#define GANNET_TOOLS_KVLOAD_METRICS_H_

#include <gannet/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tools/kvload/histogram.h"
#include "tools/kvload/live_count.h"
#include "tools/kvload/operation.h"

namespace gannet::kvload {

// The sums of the verbs of many operations.
struct VerbSums {
  LiveCount operations;
  LiveCount reads;
  uint64_t read_bytes = 0;
  uint64_t sends = 0;
  uint64_t cas = 0;
  uint64_t posts = 0;
  uint64_t completions = 0;
  uint64_t by_rpc = 0;  // GETs that fell back to the server's CPU

  // Adds a cost of an operation. Does not count the operation.
  void AddCost(const OpCost& cost);
  void Merge(const VerbSums& other);
};

// The sums of one kind of operation. The latencies, and their count, are of operations that were
// answered, including misses. Failed operations are only in `errors`.
struct OpSums {
  Histogram latency_ns;
  uint64_t not_found = 0;
  LiveCount errors;
  VerbSums verbs;
};

// Figures of one thread, merged at the end. Not thread safe, except the Counters and histograms,
// which another thread may look at meanwhile (ProgressMeter).
struct Metrics {
  std::array<OpSums, kOpKinds> ops;
  // The GETs again, by kind: from a copy, location known, location not known, and miss.
  VerbSums get_near;
  VerbSums get_warm;
  VerbSums get_cold;
  VerbSums get_miss;

  uint64_t wrong_values = 0;
  std::vector<std::string> first_wrong;  // descriptions, at most kWrongDescribedMax
  std::map<absl::StatusCode, uint64_t> errors_by_code;
  bool gave_up = false;  // a thread stopped early, because it got nothing but errors
  std::string lost;      // why a thread's server is lost, if it stopped early for that
  // The longest time between two answers of a thread.
  int64_t longest_stall_ns = 0;
  int64_t dead_ns = 0;      // the longest time that a thread was without a server
  uint64_t fail_overs = 0;  // that a thread saw, the most of all threads
  // READs that told whether copies may be used. They are no operation's.
  uint64_t near_cache_reads = 0;
  std::map<std::string, uint64_t> rail_works;  // by address, if the servers have several rails

  static constexpr size_t kWrongDescribedMax = 5;

  OpSums& of(OpKind kind) { return ops[static_cast<size_t>(kind)]; }
  const OpSums& of(OpKind kind) const { return ops[static_cast<size_t>(kind)]; }
  void AddWrong(std::string_view key, std::string_view what);
  void Merge(const Metrics& other);
  uint64_t answered() const;
  // Returns the latencies of all kinds together.
  Histogram Latencies() const;
  // Returns the share of GETs, with and without a touch, that found their key. nullopt: there were
  // no GETs.
  std::optional<double> HitRatio() const;
  uint64_t errors() const;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_METRICS_H_
