#ifndef GANNET_COMMON_BASE_NONZERO_RANDOM_H_
#define GANNET_COMMON_BASE_NONZERO_RANDOM_H_

#include <cstdint>
#include <functional>

namespace gannet {

// Returns a random number that can name something: 0 stands for no name.
inline uint64_t NonzeroRandom(const std::function<uint64_t()>& random) {
  uint64_t number = 0;
  while (number == 0) number = random();
  return number;
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_NONZERO_RANDOM_H_
