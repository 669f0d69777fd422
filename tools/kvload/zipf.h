#ifndef GANNET_TOOLS_KVLOAD_ZIPF_H_
#define GANNET_TOOLS_KVLOAD_ZIPF_H_

#include <cstdint>

#include "tools/kvload/random.h"

namespace gannet::kvload {

// Draws ranks 0..n-1 with probability proportional to 1 / (rank + 1)^theta, exactly, in constant
// time and without tables: rejection-inversion (Hoermann and Derflinger, "Rejection-inversion to
// generate variates from monotone discrete distributions", 1996). Unlike the generator of the YCSB
// paper it needs no sum over all n, so `n` may change with every draw.
//
// Immutable after construction, so threads may share one.
class Zipf {
 public:
  // REQUIRES: 0 < theta < 1.
  explicit Zipf(double theta);

  // REQUIRES: n > 0.
  uint64_t Draw(uint64_t n, Random& random) const;

 private:
  double Integral(double x) const;         // of x^-theta
  double IntegralInverse(double y) const;  // x with Integral(x) = y

  double theta_;
  double one_minus_theta_;
  double integral_low_;  // where the first rank's mass begins
  double always_;        // a draw within this distance of its rank is accepted without a check
};

// Spreads popular ranks, which are neighbours, over the key space. It is a bijection of [0, n), so
// popularity stays exactly zipfian. (Hashing modulo n would merge ranks.) REQUIRES: rank < n.
uint64_t Scramble(uint64_t rank, uint64_t n);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_ZIPF_H_
