#include "common/base/hash.h"

#include "common/base/xxh3_avx2.h"
#include "common/base/xxh3_inline.h"

namespace gannet {
namespace {

#if defined(__x86_64__)
constexpr bool kMayHaveAvx2 = true;
bool HasAvx2() { return __builtin_cpu_supports("avx2") != 0; }
#else
constexpr bool kMayHaveAvx2 = false;
bool HasAvx2() { return false; }
#endif

// Hash inputs of more than XXH3_MIDSIZE_MAX bytes, which XXH3 takes in stripes of 64. Shorter ones
// gain nothing by wide registers, and must not pay for the question.
XXH64_hash_t HashLong(const void* data, size_t size, XXH64_hash_t seed, const xxh_u8* secret,
                      size_t secret_size) {
  if constexpr (kMayHaveAvx2) {
    if (HasAvx2()) return Xxh3Avx2(data, size, seed);
  }
  return XXH3_hashLong_64b_withSeed(data, size, seed, secret, secret_size);
}
XXH64_hash_t HashLongUnseeded(const void* data, size_t size, XXH64_hash_t seed,
                              const xxh_u8* secret, size_t secret_size) {
  if constexpr (kMayHaveAvx2) {
    if (HasAvx2()) return Xxh3UnseededAvx2(data, size);
  }
  return XXH3_hashLong_64b_default(data, size, seed, secret, secret_size);
}

}  // namespace

uint64_t Xxh3(const void* data, size_t size, uint64_t seed) {
  return XXH3_64bits_internal(data, size, seed, XXH3_kSecret, sizeof(XXH3_kSecret), HashLong);
}

uint64_t Xxh3Unseeded(const void* data, size_t size) {
  // This is XXH3_64bits, but for long inputs.
  return XXH3_64bits_internal(data, size, 0, XXH3_kSecret, sizeof(XXH3_kSecret), HashLongUnseeded);
}

}  // namespace gannet
