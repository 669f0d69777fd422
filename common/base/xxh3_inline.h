#ifndef GANNET_COMMON_BASE_XXH3_INLINE_H_
#define GANNET_COMMON_BASE_XXH3_INLINE_H_

// Compiles the hash in, because for a short key or a small item the call costs as much as the
// hashing.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>

#include "common/base/hash.h"

namespace gannet {

// Xxh3 (hash.h) for the few sources where every instruction counts. It makes them larger.
[[gnu::always_inline]] inline uint64_t Xxh3Inline(const void* data, size_t size, uint64_t seed) {
  // This is XXH3_64bits_withSeed, which the compiler considers too large to inline.
  return XXH3_64bits_internal(data, size, seed, XXH3_kSecret, sizeof(XXH3_kSecret),
                              XXH3_hashLong_64b_withSeed);
}

// Xxh3Unseeded with the short lengths compiled in.
[[gnu::always_inline]] inline uint64_t Xxh3UnseededInline(const void* data, size_t size) {
  return size <= 128 ? Xxh3Inline(data, size, /*seed=*/0) : Xxh3Unseeded(data, size);
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_XXH3_INLINE_H_
