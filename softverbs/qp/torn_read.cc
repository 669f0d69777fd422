#include "softverbs/qp/torn_read.h"

#include <algorithm>
#include <random>

#include "softverbs/base/shared_copy.h"

namespace softverbs {

TornRead::TornRead(const uint8_t* from, uint32_t begin, uint32_t size, uint64_t seed)
    : begin_(begin), bytes_(size) {
  // If the answer begins or ends within a word, its part of that word is copied at once.
  for (uint32_t at = 0; at < size;) {
    const auto to_boundary = static_cast<uint32_t>(8 - reinterpret_cast<uintptr_t>(from + at) % 8);
    order_.push_back({at, std::min(to_boundary, size - at)});
    at += order_.back().size;
  }
  std::shuffle(order_.begin(), order_.end(), std::mt19937_64(seed));
}

void TornRead::Step(const uint8_t* from) {
  const size_t end = std::min(order_.size(), next_ + (order_.size() + kSteps - 1) / kSteps);
  for (; next_ < end; ++next_) {
    const Piece& piece = order_[next_];
    CopyFromShared(&bytes_[piece.at], from + piece.at, piece.size);
  }
}

}  // namespace softverbs
