#ifndef GANNET_COMMON_BASE_RANDOM_SOURCE_H_
#define GANNET_COMMON_BASE_RANDOM_SOURCE_H_

#include <sys/random.h>

#include <cstdint>

#include "common/base/check.h"

namespace gannet {

// Gives unpredictable bits, for secrets and for names that nobody else has.
class RandomSource {
 public:
  // Returns 64 of them.
  virtual uint64_t Next() = 0;
  // Returns a number that can name something: 0 stands for no name.
  uint64_t NextNonzero() {
    uint64_t number = 0;
    while (number == 0) number = Next();
    return number;
  }

 protected:
  ~RandomSource() = default;
};

// The kernel's. Thread safe.
class KernelRandom final : public RandomSource {
 public:
  uint64_t Next() override {
    uint64_t bits = 0;
    // With at most 256 bytes asked for, it neither fails nor is cut short once the kernel has
    // booted.
    const bool whole = getrandom(&bits, sizeof(bits), 0) == static_cast<ssize_t>(sizeof(bits));
    GANNET_CHECK(whole, "the kernel has no random numbers");
    return bits;
  }
};

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_RANDOM_SOURCE_H_
