#include "tools/kvload/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gannet::kvload {
namespace {

constexpr int kBits = Histogram::kSubBucketBits;
constexpr uint64_t kSubBuckets = uint64_t{1} << kBits;
// Two linear ranges share shift 0. Each further bit of the value adds one range.
constexpr size_t kBuckets = (64 - kBits + 1) * kSubBuckets;

}  // namespace

Histogram::Histogram() : counts_(kBuckets) {}

// Shifts the value right until it lies below 2 * kSubBuckets. If the shift is not 0, the result is
// in [kSubBuckets, 2 * kSubBuckets), so the ranges follow each other without a gap.
size_t Histogram::IndexOf(uint64_t value) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - (kBits + 1));
  return static_cast<size_t>(shift) * kSubBuckets + (value >> shift);
}

uint64_t Histogram::UpperBound(size_t index) {
  const uint64_t range = index / kSubBuckets;
  if (range <= 1) return index;
  const uint64_t shift = range - 1;
  const uint64_t shifted = index - shift * kSubBuckets;
  return (shifted << shift) + ((uint64_t{1} << shift) - 1);
}

void Histogram::Merge(const Histogram& other) {
  if (other.count_ == 0) return;
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_.value(), other.max_.value());
}

Histogram Histogram::Since(const Histogram& earlier) const {
  Histogram since;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const uint64_t count = counts_[i] - earlier.counts_[i];
    if (count == 0) continue;
    since.counts_[i] = count;
    since.count_ += count;
    since.max_ = std::min(UpperBound(i), max_.value());
  }
  return since;
}

uint64_t Histogram::Percentile(double fraction) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
  const uint64_t rank = std::clamp<uint64_t>(wanted, 1, count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(UpperBound(i), max_.value());
  }
  return max_;
}

}  // namespace gannet::kvload
