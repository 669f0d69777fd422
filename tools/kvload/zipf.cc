#include "tools/kvload/zipf.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gannet::kvload {

Zipf::Zipf(double theta) : theta_(theta), one_minus_theta_(1 - theta) {
  integral_low_ = Integral(1.5) - 1;
  always_ = 2 - IntegralInverse(Integral(2.5) - std::pow(2, -theta_));
}

double Zipf::Integral(double x) const { return std::pow(x, one_minus_theta_) / one_minus_theta_; }

double Zipf::IntegralInverse(double y) const {
  return std::pow(y * one_minus_theta_, 1 / one_minus_theta_);
}

uint64_t Zipf::Draw(uint64_t n, Random& random) const {
  const double high = Integral(static_cast<double>(n) + 0.5);
  // Each round accepts with a probability of more than 0.9, so the loop ends.
  while (true) {
    const double y = high + random.Fraction() * (integral_low_ - high);
    const double x = IntegralInverse(y);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(n));
    if (k - x <= always_ || y >= Integral(k + 0.5) - std::pow(k, -theta_)) {
      return static_cast<uint64_t>(k) - 1;
    }
  }
}

// Odd multiplications and xor-shifts are bijections of [0, 2^bits). Results of n and above are
// mapped again until they fall into the range (at most twice on average, because 2^bits < 2n).
uint64_t Scramble(uint64_t rank, uint64_t n) {
  const int bits = std::bit_width(n - 1);
  if (bits <= 1) return rank;
  const uint64_t mask = ~uint64_t{0} >> (64 - bits);
  const int shift = (bits + 1) / 2;
  uint64_t x = rank;
  do {
    x = (x + 0x632be59bd9b4e019ULL) & mask;
    x = (x * 0xff51afd7ed558ccdULL) & mask;
    x ^= x >> shift;
    x = (x * 0xc4ceb9fe1a85ec53ULL) & mask;
    x ^= x >> shift;
  } while (x >= n);
  return x;
}

}  // namespace gannet::kvload
