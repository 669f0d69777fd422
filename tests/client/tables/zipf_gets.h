#ifndef GANNET_TESTS_CLIENT_TABLES_ZIPF_GETS_H_
#define GANNET_TESTS_CLIENT_TABLES_ZIPF_GETS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "client/tables/location_cache.h"

namespace gannet {

// Inputs for a location cache in tests: keys are numbers, and each has a place.
inline KeyHash HashOf(uint64_t key) { return KeyHash(Mix64(key * 2 + 12345)); }
inline Slot SlotOf(uint64_t key) { return Slot::Of(HashOf(key).Tag(), 5, (key + 1) * 16); }

// Draws ranks of a zipf distribution with exponent 0.99: 0 is the most popular.
class Zipf {
 public:
  explicit Zipf(uint64_t n) : cumulated_(n) {
    double sum = 0;
    for (uint64_t i = 0; i < n; ++i) {
      sum += std::pow(static_cast<double>(i + 1), -0.99);
      cumulated_[i] = sum;
    }
  }
  uint64_t Draw(std::mt19937_64& random) const {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53 * cumulated_.back();
    return std::lower_bound(cumulated_.begin(), cumulated_.end(), u) - cumulated_.begin();
  }

 private:
  std::vector<double> cumulated_;
};

// Does one GET like the engine. Returns whether its location was known.
inline bool Get(LocationCache& cache, uint64_t key) {
  const Slot slot = cache.Find(HashOf(key));
  if (slot.empty()) cache.Remember(HashOf(key), SlotOf(key));
  return slot == SlotOf(key);
}

inline double ReadsPerGet(uint64_t hits, uint64_t gets) {
  return 2 - static_cast<double>(hits) / static_cast<double>(gets);
}

}  // namespace gannet

#endif  // GANNET_TESTS_CLIENT_TABLES_ZIPF_GETS_H_
