#include "common/base/hash.h"

#include "common/base/xxh3_avx2.h"
#include "common/base/xxh3_inline.h"

namespace gannet {
namespace {

// Longer inputs are hashed in stripes of 64 bytes. Up to here, wide registers gain nothing.
constexpr size_t kShortMax = XXH3_MIDSIZE_MAX;

#if defined(__x86_64__)
constexpr bool kMayHaveAvx2 = true;
bool HasAvx2() { return __builtin_cpu_supports("avx2") != 0; }
#else
constexpr bool kMayHaveAvx2 = false;
bool HasAvx2() { return false; }
#endif

}  // namespace

uint64_t Xxh3(const void* data, size_t size, uint64_t seed) {
  if constexpr (kMayHaveAvx2) {
    if (size > kShortMax && HasAvx2()) return Xxh3Avx2(data, size, seed);
  }
  return Xxh3Inline(data, size, seed);
}

uint64_t Xxh3Unseeded(const void* data, size_t size) {
  if constexpr (kMayHaveAvx2) {
    if (size > kShortMax && HasAvx2()) return Xxh3UnseededAvx2(data, size);
  }
  return XXH3_64bits(data, size);
}

}  // namespace gannet
