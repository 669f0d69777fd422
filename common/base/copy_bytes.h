#ifndef GANNET_COMMON_BASE_COPY_BYTES_H_
#define GANNET_COMMON_BASE_COPY_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gannet {

// memcpy(to, from, size) for what is mostly short, as keys and small values are: a call costs more
// than copying up to 128 bytes as words that overlap. The two must not overlap.
inline void CopyBytes(void* to, const void* from, size_t size) {
  struct Block {
    uint64_t words[2];
  };
  auto* out = static_cast<uint8_t*>(to);
  const auto* in = static_cast<const uint8_t*>(from);
  const auto copy = [out, in]<class Word>(size_t at, Word word) {
    std::memcpy(&word, in + at, sizeof(word));
    std::memcpy(out + at, &word, sizeof(word));
  };
  if (size - 33 <= 31) {  // 33 to 64
    copy(0, Block{});
    copy(16, Block{});
    copy(size - 32, Block{});
    copy(size - 16, Block{});
  } else if (size - 8 <= 8) {  // 8 to 16
    copy(0, uint64_t{});
    copy(size - 8, uint64_t{});
  } else if (size - 17 <= 15) {  // 17 to 32
    copy(0, Block{});
    copy(size - 16, Block{});
  } else if (size - 65 <= 63) {  // 65 to 128
    copy(0, Block{});
    copy(16, Block{});
    copy(32, Block{});
    copy(48, Block{});
    copy(size - 64, Block{});
    copy(size - 48, Block{});
    copy(size - 32, Block{});
    copy(size - 16, Block{});
  } else {
    std::memcpy(to, from, size);
  }
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_COPY_BYTES_H_
