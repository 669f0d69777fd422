#ifndef GANNET_COMMON_BASE_WORDS_H_
#define GANNET_COMMON_BASE_WORDS_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gannet {

// Integers that two machines share are little-endian everywhere, and are used as they lie in
// memory.
static_assert(std::endian::native == std::endian::little,
              "Gannet's layouts are little-endian: it runs on little-endian machines only");

// Functions for bytes that clients READ while the server writes them. Such bytes may be touched
// only by these: single aligned 8-byte relaxed accesses. So a word is never torn. Anything wider
// may be torn, and a checksum proves it. (A plain memcpy that races with a READ would be a data
// race by the language's rules, and to TSan.)
//
// The caller is responsible for the order between words. Use StoreWordRelease for a store that must
// not be seen before earlier ones.

inline uint64_t LoadWord(const void* p) {
  return __atomic_load_n(static_cast<const uint64_t*>(p), __ATOMIC_RELAXED);
}

inline void StoreWord(void* p, uint64_t value) {
  __atomic_store_n(static_cast<uint64_t*>(p), value, __ATOMIC_RELAXED);
}

// A reader that sees `value` also sees everything that this thread stored before.
inline void StoreWordRelease(void* p, uint64_t value) {
  __atomic_store_n(static_cast<uint64_t*>(p), value, __ATOMIC_RELEASE);
}

// Copies `size` bytes into published memory, word by word, and pads the last word with zeroes.
// REQUIRES: dst is 8-byte aligned and has AlignUp(size, 8) bytes.
[[gnu::always_inline]] inline void StoreWords(void* dst, const void* src, size_t size) {
  auto* to = static_cast<uint8_t*>(dst);
  const auto* from = static_cast<const uint8_t*>(src);
  const size_t whole = size & ~size_t{7};
  const auto copy_word = [&](size_t at) {
    uint64_t word;
    std::memcpy(&word, from + at, 8);
    StoreWord(to + at, word);
  };
  size_t i = 0;
  for (; i + 64 <= whole; i += 64) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 64; j += 8) copy_word(i + j);
  }
  for (; i != whole; i += 8) copy_word(i);
  if (i < size) {
    uint64_t word = 0;
    std::memcpy(&word, from + i, size - i);
    StoreWord(to + i, word);
  }
}

// Copies `size` bytes out of published memory. REQUIRES: src is 8-byte aligned and AlignUp(size, 8)
// bytes of it are readable; dst has `size` bytes.
inline void LoadWords(void* dst, const void* src, size_t size) {
  auto* to = static_cast<uint8_t*>(dst);
  const auto* from = static_cast<const uint8_t*>(src);
  const size_t whole = size & ~size_t{7};
  const auto copy_word = [&](size_t at) {
    const uint64_t word = LoadWord(from + at);
    std::memcpy(to + at, &word, 8);
  };
  size_t i = 0;
  for (; i + 64 <= whole; i += 64) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 64; j += 8) copy_word(i + j);
  }
  for (; i != whole; i += 8) copy_word(i);
  if (i < size) {
    const uint64_t word = LoadWord(from + i);
    std::memcpy(to + i, &word, size - i);
  }
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_WORDS_H_
