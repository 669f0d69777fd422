#ifndef GANNET_COMMON_PROTOCOL_CLIENT_REPORT_H_
#define GANNET_COMMON_PROTOCOL_CLIENT_REPORT_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace gannet {

// What a client did since its last report. One-sided READs hide GETs from the server, so clients
// count them, and tell with their heartbeats: a report, and touches behind it. docs/protocol.md has
// the bytes.

// A bit of Grant::features: the server takes reports.
inline constexpr uint16_t kGrantTakesReports = 1 << 2;

struct ClientCounts {
  uint64_t hits;    // GETs that found their key
  uint64_t misses;  // GETs that did not
  uint64_t reads;   // one-sided READs, for whatever
  uint64_t by_rpc;  // of hits and misses: GETs that the server was asked for
};
static_assert(sizeof(ClientCounts) == 32 && std::is_trivially_copyable_v<ClientCounts>);

// The kinds of operations whose latencies are counted apart.
enum class LatencyKind : uint8_t { kGet, kWrite, kOther };
inline constexpr size_t kLatencyKinds = 3;

// Latencies are counted in buckets, four for each doubling. Bucket 0 is for less than 128 ns, the
// last one for everything from some 15 s on.
struct LatencyBucket {
  static constexpr size_t kCount = 109;

  static constexpr size_t Of(uint64_t ns) {
    if (ns < kFirstNs) return 0;
    const size_t doubling = static_cast<size_t>(std::bit_width(ns)) - 1;
    const size_t quarter = ns >> (doubling - 2) & 3;
    return std::min(1 + (doubling - kFirstDoubling) * 4 + quarter, kCount - 1);
  }
  // All latencies of the bucket are below this, but for the last bucket's.
  static constexpr uint64_t EndNs(size_t bucket) {
    if (bucket == 0) return kFirstNs;
    const size_t doubling = kFirstDoubling + (bucket - 1) / 4;
    return (4 + (bucket - 1) % 4 + 1) << (doubling - 2);
  }

 private:
  static constexpr size_t kFirstDoubling = 7;
  static constexpr uint64_t kFirstNs = 1 << kFirstDoubling;
};
static_assert(LatencyBucket::Of(127) == 0 && LatencyBucket::Of(128) == 1);
static_assert(LatencyBucket::EndNs(1) == 160 && LatencyBucket::Of(160) == 2);

// So many latencies of a kind were in a bucket, 8 bytes: bits 0-31 are how many (not 0), bits 32-39
// the bucket, bits 40-47 the kind, the others are zero.
struct LatencyCount {
  constexpr explicit LatencyCount(uint64_t w) : word(w) {}
  static constexpr LatencyCount Of(LatencyKind kind, size_t bucket, uint32_t count) {
    return LatencyCount(uint64_t{count} | uint64_t{bucket} << 32 |
                        static_cast<uint64_t>(kind) << 40);
  }
  constexpr uint32_t count() const { return static_cast<uint32_t>(word); }
  constexpr size_t bucket() const { return word >> 32 & 0xff; }
  constexpr size_t kind() const { return word >> 40; }

  uint64_t word;
};
static_assert(sizeof(LatencyCount) == 8);

inline constexpr size_t kClientReportBytesMax =
    sizeof(ClientCounts) + kLatencyKinds * LatencyBucket::kCount * sizeof(LatencyCount);

// No honest client counts more between two reports.
inline constexpr uint64_t kClientCountMax = uint64_t{1} << 40;

// A report as it came.
struct ClientReportView {
  // Returns nullopt if the bytes are no report: too long or too short, or a count, bucket or kind
  // that cannot be.
  static std::optional<ClientReportView> Decode(std::string_view bytes);

  // Calls use(LatencyCount) for each.
  template <class F>
  void ForEachLatency(F use) const {
    for (size_t at = 0; at < latencies.size(); at += sizeof(LatencyCount)) use(LatencyAt(at));
  }
  LatencyCount LatencyAt(size_t at) const;

  ClientCounts counts;
  std::string_view latencies;  // LatencyCounts
};

// Returns the end of the bucket that has the given share of the latencies, 0 to 1, in ns; 0 if
// there are none. `count(bucket)` returns how many are in a bucket.
template <class F>
uint64_t LatencyQuantileNs(double share, F count) {
  uint64_t all = 0;
  for (size_t bucket = 0; bucket < LatencyBucket::kCount; ++bucket) all += count(bucket);
  if (all == 0) return 0;
  const double wanted = share * static_cast<double>(all);
  uint64_t below = 0;
  for (size_t bucket = 0; bucket < LatencyBucket::kCount; ++bucket) {
    below += count(bucket);
    if (below > 0 && static_cast<double>(below) >= wanted) return LatencyBucket::EndNs(bucket);
  }
  return LatencyBucket::EndNs(LatencyBucket::kCount - 1);
}

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_CLIENT_REPORT_H_
