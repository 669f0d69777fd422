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

inline void CopyFromShared(void* to, const void* shared, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  auto* in = static_cast<const uint8_t*>(shared);
  while (size > 0 && reinterpret_cast<uintptr_t>(in) % 8 != 0) {
    *out++ = __atomic_load_n(in++, __ATOMIC_RELAXED);
    --size;
  }
  for (; size >= 8; size -= 8, in += 8, out += 8) {
    const uint64_t word = __atomic_load_n(reinterpret_cast<const uint64_t*>(in), __ATOMIC_RELAXED);
    memcpy(out, &word, 8);
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
  for (; size >= 8; size -= 8, in += 8, out += 8) {
    uint64_t word;
    memcpy(&word, in, 8);
    __atomic_store_n(reinterpret_cast<uint64_t*>(out), word, __ATOMIC_RELAXED);
  }
  while (size-- > 0) __atomic_store_n(out++, *in++, __ATOMIC_RELAXED);
}

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_SHARED_COPY_H_
