#ifndef GANNET_SERVER_MEMORY_STORE_HASH_OF_HOME_H_
#define GANNET_SERVER_MEMORY_STORE_HASH_OF_HOME_H_

#include <cstdint>

namespace gannet {

// Returns the first hash whose home is `home`, or 0 behind the last home. So a walk over homes can
// keep a hash as its position, which stays right if the number of homes changes between two steps.
inline uint64_t FirstHashOf(uint64_t home, uint64_t homes) {
  const auto scaled = static_cast<unsigned __int128>(home) << 64;
  return static_cast<uint64_t>((scaled + homes - 1) / homes);
}

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_HASH_OF_HOME_H_
