#ifndef SOFTVERBS_BASE_SHARED_COPY_H_
#define SOFTVERBS_BASE_SHARED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace softverbs {

// Copies between private memory and memory that other threads or processes change meanwhile, as a
// NIC does: every aligned 8-byte word of the shared side is copied at once, words in ascending
// order, nothing is promised about a whole. Relaxed: order comes from the queues around the copy
// (a completion is pushed under a lock, a packet is published with release).

inline uint64_t LoadShared(const uint8_t* word) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(word), __ATOMIC_RELAXED);
}

inline void StoreShared(uint8_t* word, uint64_t value) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(word), value, __ATOMIC_RELAXED);
}

inline void CopyFromShared(void* to, const void* shared, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  auto* in = static_cast<const uint8_t*>(shared);
  while (size > 0 && reinterpret_cast<uintptr_t>(in) % 8 != 0) {
    *out++ = __atomic_load_n(in++, __ATOMIC_RELAXED);
    --size;
  }
  // By hand, as compilers do not unroll loops of atomic loads.
  for (; size >= 32; size -= 32, in += 32, out += 32) {
    const uint64_t first = LoadShared(in), second = LoadShared(in + 8);
    const uint64_t third = LoadShared(in + 16), fourth = LoadShared(in + 24);
    memcpy(out, &first, 8);
    memcpy(out + 8, &second, 8);
    memcpy(out + 16, &third, 8);
    memcpy(out + 24, &fourth, 8);
  }
  for (; size >= 8; size -= 8, in += 8, out += 8) {
    const uint64_t word = LoadShared(in);
    memcpy(out, &word, sizeof(word));
  }
  while (size-- > 0) *out++ = __atomic_load_n(in++, __ATOMIC_RELAXED);
}

inline void CopyToShared(void* shared, const void* from, size_t size) {
  auto* out = static_cast<uint8_t*>(shared);
  auto* in = static_cast<const uint8_t*>(from);
  while (size > 0 && reinterpret_cast<uintptr_t>(out) % 8 != 0) {
    __atomic_store_n(out++, *in++, __ATOMIC_RELAXED);
    --size;
  }
  for (; size >= 32; size -= 32, in += 32, out += 32) {
    uint64_t words[4];
    memcpy(words, in, sizeof(words));
    StoreShared(out, words[0]);
    StoreShared(out + 8, words[1]);
    StoreShared(out + 16, words[2]);
    StoreShared(out + 24, words[3]);
  }
  for (; size >= 8; size -= 8, in += 8, out += 8) {
    uint64_t word;
    memcpy(&word, in, sizeof(word));
    StoreShared(out, word);
  }
  while (size-- > 0) __atomic_store_n(out++, *in++, __ATOMIC_RELAXED);
}

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_SHARED_COPY_H_
