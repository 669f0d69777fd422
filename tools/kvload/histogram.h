#ifndef GANNET_TOOLS_KVLOAD_HISTOGRAM_H_
#define GANNET_TOOLS_KVLOAD_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/kvload/live_count.h"

namespace gannet::kvload {

// A log-linear histogram of unsigned numbers (here: nanoseconds). It splits every power of two into
// 128 equal buckets, and is exact for numbers below 256. So a percentile is never below the true
// one and at most 1/128 (0.8 %) above it, over the whole range of 64 bits. It takes 57 KiB.
//
// One thread records. Others may Merge from it meanwhile, and get what it has recorded so far;
// counts of the last moment may be missing. Each thread has its own histogram, and they are merged.
class Histogram {
 public:
  static constexpr int kSubBucketBits = 7;

  Histogram();

  void Record(uint64_t value) {
    ++counts_[IndexOf(value)];
    ++count_;
    if (value > max_) max_ = value;
  }
  void Merge(const Histogram& other);
  // Returns what was recorded since an earlier state of this histogram. Its maximum is that of the
  // highest bucket. REQUIRES: nobody records.
  Histogram Since(const Histogram& earlier) const;
  // Calls visit(low, high, count) for each bucket that is not empty, from the lowest numbers to the
  // highest. The bucket's numbers are low to high.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      const uint64_t count = counts_[i];
      if (count > 0) visit(i == 0 ? 0 : UpperBound(i - 1) + 1, UpperBound(i), count);
    }
  }

  uint64_t count() const { return count_; }
  // Returns the exact maximum, or 0 if the histogram is empty.
  uint64_t max() const { return max_; }
  // Returns the percentile by nearest rank: the smallest recorded number that at least `fraction`
  // of all do not exceed, rounded up to the upper bound of its bucket. Returns 0 if the histogram
  // is empty. REQUIRES: 0 < fraction <= 1.
  uint64_t Percentile(double fraction) const;

  static size_t IndexOf(uint64_t value);
  // Returns the largest number that falls into a bucket.
  static uint64_t UpperBound(size_t index);

 private:
  std::vector<LiveCount> counts_;
  LiveCount count_;
  LiveCount max_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_HISTOGRAM_H_
