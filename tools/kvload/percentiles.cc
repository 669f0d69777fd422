#include "tools/kvload/percentiles.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace gannet::kvload {
namespace {

constexpr double kTicksPerHalving = 5;
constexpr double kNsPerUs = 1000;

// Returns the share to report after this one.
double NextShare(double share) {
  const double halvings = std::floor(std::log2(1 / (1 - share))) + 1;
  return share + 1 / (kTicksPerHalving * std::exp2(halvings));
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};

// Takes every number for the middle of its bucket.
Moments MomentsOf(const Histogram& histogram) {
  if (histogram.count() == 0) return {};
  double sum = 0;
  double squares = 0;
  histogram.ForEach([&](uint64_t low, uint64_t high, uint64_t count) {
    const double middle = (static_cast<double>(low) + static_cast<double>(high)) / 2;
    sum += middle * static_cast<double>(count);
    squares += middle * middle * static_cast<double>(count);
  });
  const auto n = static_cast<double>(histogram.count());
  const double mean = sum / n;
  return {mean, std::sqrt(std::max(0.0, squares / n - mean * mean))};
}

}  // namespace

std::string PercentilesText(const Histogram& latency_ns) {
  std::string text = absl::StrFormat("%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
                                     "1/(1-Percentile)");
  double share = 0;  // the next that is due
  uint64_t seen = 0;
  latency_ns.ForEach([&](uint64_t, uint64_t high, uint64_t count) {
    seen += count;
    const double reached = static_cast<double>(seen) / static_cast<double>(latency_ns.count());
    const double us = static_cast<double>(std::min(high, latency_ns.max())) / kNsPerUs;
    for (; share <= reached && seen < latency_ns.count(); share = NextShare(share)) {
      absl::StrAppendFormat(&text, "%12.3f %14.12f %10d %14.2f\n", us, share, seen,
                            1 / (1 - share));
    }
    if (seen == latency_ns.count()) {
      absl::StrAppendFormat(&text, "%12.3f %14.12f %10d\n", us, 1.0, seen);
    }
  });
  const Moments moments = MomentsOf(latency_ns);
  absl::StrAppendFormat(&text, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n",
                        moments.mean / kNsPerUs, moments.deviation / kNsPerUs);
  absl::StrAppendFormat(&text, "#[Max     = %12.3f, Total count    = %12d]\n",
                        static_cast<double>(latency_ns.max()) / kNsPerUs, latency_ns.count());
  absl::StrAppendFormat(&text, "#[Buckets = %12d, SubBuckets     = %12d]\n",
                        64 - Histogram::kSubBucketBits + 1, 1 << Histogram::kSubBucketBits);
  return text;
}

}  // namespace gannet::kvload
