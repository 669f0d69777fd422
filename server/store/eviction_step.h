#ifndef GANNET_SERVER_STORE_EVICTION_STEP_H_
#define GANNET_SERVER_STORE_EVICTION_STEP_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "server/index/index.h"

namespace gannet {

// What the steps of an eviction hand to each other (store_evict.cc).

// How items are chosen that lie near a home.
struct EvictionChoice {
  uint32_t size_class;  // this class is preferred; kSizeClassNone: none is
  uint64_t reach;       // homes to both sides
  bool window_only;     // only items in the two buckets of the home's window
};

struct EvictionCandidate {
  Index::Found found;
  int32_t worth;
};

// Blocks of the span that were free, and are kept from others until it is clear.
struct ClearedSpan {
  static constexpr size_t kKeptMax = 256;
  const std::byte* begin;
  const std::byte* end;
  uint32_t kept = 0;
  std::array<std::byte*, kKeptMax> blocks{};
  std::array<uint8_t, kKeptMax> classes{};
};

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_EVICTION_STEP_H_
