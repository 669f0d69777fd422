#include "common/base/hash.h"

#include <xxhash.h>

namespace gannet {

uint64_t Xxh3(const void* data, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}

}  // namespace gannet
