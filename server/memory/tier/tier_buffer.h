#ifndef GANNET_SERVER_MEMORY_TIER_TIER_BUFFER_H_
#define GANNET_SERVER_MEMORY_TIER_TIER_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "common/base/align.h"
#include "server/memory/tier/tier_format.h"

namespace gannet {

// Memory for whole blocks of the disk, aligned as O_DIRECT wants it.
class TierBuffer {
 public:
  explicit TierBuffer(size_t bytes)
      : bytes_(AlignUp(bytes, kTierBlockBytes)),
        memory_(static_cast<std::byte*>(std::aligned_alloc(kTierBlockBytes, bytes_))) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }

  std::span<std::byte> bytes() const { return {memory_.get(), bytes_}; }

 private:
  struct Deleter {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  size_t bytes_;
  std::unique_ptr<std::byte[], Deleter> memory_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_TIER_TIER_BUFFER_H_
