#ifndef GANNET_CLIENT_SESSION_USAGE_LOG_H_
#define GANNET_CLIENT_SESSION_USAGE_LOG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "common/base/check.h"
#include "common/protocol/client_report.h"

namespace gannet {

// Counts what a client does with one server, for the report that rides on its heartbeats. The
// server sees no one-sided READ, so this is how it learns of GETs. What a broken connection loses
// is not told again.
//
// One owner thread.
class UsageLog {
 public:
  static constexpr size_t kBytesOfHit = 88;

  // A connection was made. Reports go out at most every `period_ns`, if the server takes them.
  void Restart(bool server_takes, int64_t now_ns, int64_t period_ns) {
    on_ = server_takes;
    due_ns_ = now_ns + period_ns;
    period_ns_ = period_ns;
  }

  void Hit() { counts_.hits += 1; }
  // Adds the hits whose completions have so many bytes together, kBytesOfHit each. Called in every
  // Poll, so it only adds the bytes up. Take divides them.
  void HitsIn(std::ptrdiff_t bytes) { hit_bytes_ += static_cast<uint64_t>(bytes); }
  void Missed() { ++counts_.misses; }
  void Asked() { ++counts_.by_rpc; }
  // Counts all work requests that were posted as READs. PostedOther takes out one that was none.
  void Posted(uint64_t works) { counts_.reads += works; }
  void PostedOther() { --counts_.reads; }
  // An operation of the sample took so long.
  void Took(LatencyKind kind, int64_t ns) {
    ++latencies_[static_cast<size_t>(kind)][LatencyBucket::Of(static_cast<uint64_t>(ns))];
    sampled_ = true;
  }

  // Returns whether there is something to tell.
  bool HasNews() const {
    return on_ && (sampled_ || (counts_.hits | hit_bytes_ | counts_.misses | counts_.by_rpc) != 0);
  }
  // Returns whether there is something to tell, and it is time to.
  bool Due(int64_t now_ns) const { return now_ns >= due_ns_ && HasNews(); }
  // It is time now.
  void Hasten() { due_ns_ = std::numeric_limits<int64_t>::min(); }
  // Writes the report, and begins the next one. Returns its bytes. REQUIRES: `out` has room for
  // kClientReportBytesMax.
  size_t Take(int64_t now_ns, std::span<std::byte> out) {
    GANNET_CHECK(out.size() >= kClientReportBytesMax, "no room for a report");
    due_ns_ = now_ns + period_ns_;
    counts_.hits += hit_bytes_ / kBytesOfHit;
    hit_bytes_ = 0;
    // A work request may be counted as no READ before it is posted.
    ClientCounts told = counts_;
    if (told.reads > kClientCountMax) told.reads = 0;
    std::memcpy(out.data(), &told, sizeof(told));
    counts_ = {.reads = counts_.reads - told.reads};
    size_t bytes = sizeof(told);
    for (size_t kind = 0; kind < kLatencyKinds; ++kind) {
      for (size_t bucket = 0; sampled_ && bucket < LatencyBucket::kCount; ++bucket) {
        const uint32_t count = latencies_[kind][bucket];
        if (count == 0) continue;
        const auto word = LatencyCount::Of(static_cast<LatencyKind>(kind), bucket, count);
        std::memcpy(out.data() + bytes, &word, sizeof(word));
        bytes += sizeof(word);
      }
    }
    if (sampled_) latencies_ = {};
    sampled_ = false;
    return bytes;
  }

 private:
  bool on_ = false;
  bool sampled_ = false;
  int64_t due_ns_ = 0;
  int64_t period_ns_ = 0;
  uint64_t hit_bytes_ = 0;
  ClientCounts counts_{};
  std::array<std::array<uint32_t, LatencyBucket::kCount>, kLatencyKinds> latencies_{};
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_USAGE_LOG_H_
