#ifndef GANNET_TESTS_SUPPORT_TEST_SEED_H_
#define GANNET_TESTS_SUPPORT_TEST_SEED_H_

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>

namespace gannet {

// Returns the seed of a randomised test: GANNET_TEST_SEED, or a new one. Prints it, so that a run
// can be repeated.
inline uint64_t TestSeed() {
  const char* given = std::getenv("GANNET_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "seed " << seed << " (GANNET_TEST_SEED repeats it)" << std::endl;
  return seed;
}

}  // namespace gannet

#endif  // GANNET_TESTS_SUPPORT_TEST_SEED_H_
