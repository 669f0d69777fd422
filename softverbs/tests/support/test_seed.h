#ifndef SOFTVERBS_TESTS_SUPPORT_TEST_SEED_H_
#define SOFTVERBS_TESTS_SUPPORT_TEST_SEED_H_

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>

namespace test_support {

// Returns TEST_SEED, with which a run can be repeated, if it is given.
inline std::optional<uint64_t> GivenSeed() {
  const char* given = std::getenv("TEST_SEED");
  if (given == nullptr) return std::nullopt;
  return std::strtoull(given, nullptr, 10);
}

// Returns the seed of a randomised test: TEST_SEED, or a new one. Prints it.
inline uint64_t TestSeed() {
  const std::optional<uint64_t> given = GivenSeed();
  const uint64_t seed = given.has_value() ? *given : std::random_device{}();
  std::cout << "seed " << seed << " (TEST_SEED repeats it)" << std::endl;
  return seed;
}

}  // namespace test_support

#endif  // SOFTVERBS_TESTS_SUPPORT_TEST_SEED_H_
