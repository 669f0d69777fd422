#ifndef SOFTVERBS_BASE_SHARED_COPY_H_
#define SOFTVERBS_BASE_SHARED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace softverbs {

// Copies between private memory and memory that other threads or processes change meanwhile, as a
// NIC does. Every aligned 8-byte word of the shared side is copied at once, and words in ascending
// order. The copy as a whole is not atomic. Relaxed: the queues around the copy give the order (a
// completion is pushed under a lock, a packet is published with release).

inline uint64_t LoadShared(const uint8_t* word) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(word), __ATOMIC_RELAXED);
}

inline void StoreShared(uint8_t* word, uint64_t value) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(word), value, __ATOMIC_RELAXED);
}

// Copies four words, unrolled by hand: compilers do not unroll loops of atomic loads and stores.
inline void LoadFourShared(uint8_t* to, const uint8_t* shared) {
  const uint64_t first = LoadShared(shared), second = LoadShared(shared + 8);
  const uint64_t third = LoadShared(shared + 16), fourth = LoadShared(shared + 24);
  memcpy(to, &first, 8);
  memcpy(to + 8, &second, 8);
  memcpy(to + 16, &third, 8);
  memcpy(to + 24, &fourth, 8);
}

inline void StoreFourShared(uint8_t* shared, const uint8_t* from) {
  uint64_t words[4];
  memcpy(words, from, sizeof(words));
  StoreShared(shared, words[0]);
  StoreShared(shared + 8, words[1]);
  StoreShared(shared + 16, words[2]);
  StoreShared(shared + 24, words[3]);
}

// For any size and alignment of the shared side.
[[gnu::noinline]] inline void CopyAnyFromShared(uint8_t* out, const uint8_t* in, size_t size) {
  while (size > 0 && reinterpret_cast<uintptr_t>(in) % 8 != 0) {
    *out++ = __atomic_load_n(in++, __ATOMIC_RELAXED);
    --size;
  }
  for (; size >= 32; size -= 32, in += 32, out += 32) LoadFourShared(out, in);
  for (; size >= 8; size -= 8, in += 8, out += 8) {
    const uint64_t word = LoadShared(in);
    memcpy(out, &word, sizeof(word));
  }
  while (size-- > 0) *out++ = __atomic_load_n(in++, __ATOMIC_RELAXED);
}

// Inlines only the copy of whole aligned blocks of 64 bytes, of which short READs consist.
inline void CopyFromShared(void* to, const void* shared, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  auto* in = static_cast<const uint8_t*>(shared);
  if (reinterpret_cast<uintptr_t>(in) % 8 == 0) {
    for (const uint8_t* end = in + size / 64 * 64; in != end; in += 64, out += 64) {
      LoadFourShared(out, in);
      LoadFourShared(out + 32, in + 32);
    }
    size %= 64;
    if (size == 0) return;
  }
  CopyAnyFromShared(out, in, size);
}

inline void CopyToShared(void* shared, const void* from, size_t size) {
  auto* out = static_cast<uint8_t*>(shared);
  auto* in = static_cast<const uint8_t*>(from);
  while (size > 0 && reinterpret_cast<uintptr_t>(out) % 8 != 0) {
    __atomic_store_n(out++, *in++, __ATOMIC_RELAXED);
    --size;
  }
  for (; size >= 32; size -= 32, in += 32, out += 32) StoreFourShared(out, in);
  for (; size >= 8; size -= 8, in += 8, out += 8) {
    uint64_t word;
    memcpy(&word, in, sizeof(word));
    StoreShared(out, word);
  }
  while (size-- > 0) __atomic_store_n(out++, *in++, __ATOMIC_RELAXED);
}

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_SHARED_COPY_H_
