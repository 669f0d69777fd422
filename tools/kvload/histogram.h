#ifndef GANNET_TOOLS_KVLOAD_HISTOGRAM_H_
#define GANNET_TOOLS_KVLOAD_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gannet::kvload {

// A log-linear histogram of unsigned numbers (here: nanoseconds). It splits every power of two into
// 128 equal buckets, and is exact for numbers below 256. So a percentile is never below the true
// one and at most 1/128 (0.8 %) above it, over the whole range of 64 bits. It takes 57 KiB.
//
// Not thread safe: each thread has its own, and they are merged at the end.
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
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_HISTOGRAM_H_
