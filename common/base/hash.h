#ifndef GANNET_COMMON_BASE_HASH_H_
#define GANNET_COMMON_BASE_HASH_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gannet {

// XXH3-64 of `size` bytes (xxhash, stable since 0.8.0). The project uses it for every hash and
// every checksum.
uint64_t Xxh3(const void* data, size_t size, uint64_t seed);

// Xxh3(data, size, 0) in fewer instructions: without a seed, the compiler knows the secret's
// constants. Out of line on purpose, because inlined it would compete for registers with the code
// around it.
uint64_t Xxh3Unseeded(const void* data, size_t size);

// Hash of a key under an index's seed (Superblock::hash_seed). layout/key_hash.h says which bits of
// it decide what.
inline uint64_t HashKey(std::string_view key, uint64_t seed) {
  return Xxh3(key.data(), key.size(), seed);
}

// A bijective mix of 64 bits (the finaliser of MurmurHash3), to derive seeds and second hashes.
constexpr uint64_t Mix64(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  x ^= x >> 33;
  return x;
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_HASH_H_
