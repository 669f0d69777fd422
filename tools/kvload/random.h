#ifndef GANNET_TOOLS_KVLOAD_RANDOM_H_
#define GANNET_TOOLS_KVLOAD_RANDOM_H_

#include <cstdint>

#include "common/base/align.h"
#include "common/base/hash.h"

namespace gannet::kvload {

// A SplitMix64 stream (Steele, Lea, Flood 2014): each number takes one addition and one mix. It is
// the same on every machine, so a seed names a run. Not thread safe: each thread has its own.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(Mix64(seed ^ kGolden)) {}

  uint64_t Next() { return Mix64(state_ += kGolden); }
  // Uniform in [0, n). REQUIRES: n > 0.
  uint64_t Below(uint64_t n) { return MapToRange(Next(), n); }
  // Uniform in (0, 1].
  double Fraction() { return static_cast<double>((Next() >> 11) + 1) * 0x1.0p-53; }

 private:
  static constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  uint64_t state_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_RANDOM_H_
