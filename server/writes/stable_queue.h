#ifndef GANNET_SERVER_WRITES_STABLE_QUEUE_H_
#define GANNET_SERVER_WRITES_STABLE_QUEUE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/data_path_checks.h"

namespace gannet {

// A queue whose elements do not move, and which allocates nothing while it is short: unlike
// std::deque it keeps the memory of elements that were removed, and uses it again.
//
// Thread safety: one thread at a time.
template <class T>
class StableQueue {
 public:
  // Returns the new last element. It has the fields of a former one, or is as T was made.
  T& PushBack() {
    if (next_ == chunk_end_) [[unlikely]]
      NextChunk();
    ++size_;
    return *next_++;
  }
  // REQUIRES: it is not empty.
  void PopFront() { PopFront(1); }
  // REQUIRES: it has so many elements.
  void PopFront(size_t count) {
    GANNET_CHECK_DATA_PATH(count <= size_, "fewer elements are there");
    size_ -= count;
    first_ += count;
    if (size_ == 0) {
      first_ = 0;  // these places were used last, so they are in the caches
      next_ = chunk_end_ = nullptr;
    } else if (first_ >= kChunk) [[unlikely]] {
      KeepChunks();
    }
  }
  // Returns the first elements that lie side by side: none only if it is empty.
  std::span<const T> FirstRun() const {
    if (empty()) return {};
    return std::span(*chunks_.front()).subspan(first_, std::min(size_, kChunk - first_));
  }
  T& operator[](size_t i) { return (*chunks_[(first_ + i) / kChunk])[(first_ + i) % kChunk]; }
  const T& operator[](size_t i) const {
    return (*chunks_[(first_ + i) / kChunk])[(first_ + i) % kChunk];
  }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  static constexpr size_t kChunk = 64;
  static constexpr size_t kChunksKept = 64;
  using Chunk = std::array<T, kChunk>;

  void NextChunk() {
    const size_t at = first_ + size_;
    if (at / kChunk == chunks_.size()) chunks_.push_back(std::make_unique<Chunk>());
    Chunk& chunk = *chunks_[at / kChunk];
    next_ = chunk.data() + at % kChunk;
    chunk_end_ = chunk.data() + kChunk;
  }
  // Chunks whose elements were all removed go to the end.
  void KeepChunks() {
    while (first_ >= kChunk) {
      first_ -= kChunk;
      std::unique_ptr<Chunk> free = std::move(chunks_.front());
      chunks_.erase(chunks_.begin());
      if (chunks_.size() < kChunksKept) chunks_.push_back(std::move(free));
    }
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;  // the last ones may be free
  size_t first_ = 0;                            // of the first chunk
  size_t size_ = 0;
  // Where the next element goes. If these are equal, it is looked for.
  T* next_ = nullptr;
  T* chunk_end_ = nullptr;
};

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_STABLE_QUEUE_H_
