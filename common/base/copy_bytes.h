#ifndef GANNET_COMMON_BASE_COPY_BYTES_H_
#define GANNET_COMMON_BASE_COPY_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gannet {

// memcpy(to, from, size) for copies that are mostly short. A call costs more than copying some
// words, so short sizes are copied as words that may overlap. `to` and `from` must not overlap.

namespace copy_bytes_internal {

struct Pair {
  uint64_t words[2];
};

template <class Word>
void CopyWord(uint8_t* to, const uint8_t* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  std::memcpy(to, &word, sizeof(word));
}

// Copies one word `inset` bytes from the start, and one that ends `inset` bytes before the end.
template <class Word>
void CopyEnds(uint8_t* to, const uint8_t* from, size_t inset, size_t size) {
  CopyWord<Word>(to + inset, from + inset);
  const size_t last = size - inset - sizeof(Word);
  CopyWord<Word>(to + last, from + last);
}

}  // namespace copy_bytes_internal

// For keys. Copies 8 to 32 bytes without a call.
inline void CopyKeyBytes(void* to, const void* from, size_t size) {
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  if (size - 8 <= 8) return copy_bytes_internal::CopyEnds<uint64_t>(out, in, 0, size);
  if (size - 17 <= 15) {
    return copy_bytes_internal::CopyEnds<copy_bytes_internal::Pair>(out, in, 0, size);
  }
  std::memcpy(to, from, size);
}

// For values. Copies 32 to 128 bytes without a call.
inline void CopyValueBytes(void* to, const void* from, size_t size) {
  using copy_bytes_internal::CopyEnds, copy_bytes_internal::Pair;
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  if (size - 32 > 96) [[unlikely]] {
    if (size > 0) std::memcpy(to, from, size);
    return;
  }
  CopyEnds<Pair>(out, in, 0, size);
  CopyEnds<Pair>(out, in, 16, size);
  if (size <= 64) return;
  CopyEnds<Pair>(out, in, 32, size);
  CopyEnds<Pair>(out, in, 48, size);
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_COPY_BYTES_H_
