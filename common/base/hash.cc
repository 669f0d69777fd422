#include "common/base/hash.h"

#include "common/base/xxh3_inline.h"

namespace gannet {

uint64_t Xxh3(const void* data, size_t size, uint64_t seed) { return Xxh3Inline(data, size, seed); }

uint64_t Xxh3Unseeded(const void* data, size_t size) { return XXH3_64bits(data, size); }

}  // namespace gannet
