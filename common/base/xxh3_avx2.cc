// Compiled with -mavx2, unlike all other sources. So it includes nothing that has inline functions
// of external linkage: the linker might take this source's copy of one for the whole program, and
// that would fail on an older processor. All of xxhash.h is static here.

#include "common/base/xxh3_avx2.h"

#if defined(__AVX2__)

#include <immintrin.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gannet {
namespace {

// Clears the upper halves of the wide registers. As long as they are in use, all SSE instructions
// of the program take longer. GCC 12 should do this by itself, and does not here.
uint64_t Leave(uint64_t hash) {
  _mm256_zeroupper();
  return hash;
}

}  // namespace

uint64_t Xxh3Avx2(const void* data, size_t size, uint64_t seed) {
  return Leave(XXH3_64bits_withSeed(data, size, seed));
}

uint64_t Xxh3UnseededAvx2(const void* data, size_t size) { return Leave(XXH3_64bits(data, size)); }

}  // namespace gannet

#endif
