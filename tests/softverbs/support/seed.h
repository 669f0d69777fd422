#ifndef GANNET_TESTS_SOFTVERBS_SUPPORT_SEED_H_
#define GANNET_TESTS_SOFTVERBS_SUPPORT_SEED_H_

#include <cstdint>

namespace softverbs {

// Returns the seed of randomised tests: --seed=N on the command line (child_main.cc), or a new one.
// Prints it.
uint64_t TestSeed();
// Takes the flag. Returns false if `argument` is something else.
bool ParseSeed(const char* argument);

}  // namespace softverbs

#endif  // GANNET_TESTS_SOFTVERBS_SUPPORT_SEED_H_
