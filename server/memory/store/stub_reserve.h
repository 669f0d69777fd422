#ifndef GANNET_SERVER_MEMORY_STORE_STUB_RESERVE_H_
#define GANNET_SERVER_MEMORY_STORE_STUB_RESERVE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/mutex.h"
#include "common/layout/item.h"
#include "common/layout/stub.h"
#include "server/memory/heap/heap.h"

namespace gannet {

// Blocks for stubs, some of each class that was ever wanted, as an item becomes a stub when the
// heap is full.
//
// Thread safety: all methods, from any thread.
class StubReserve {
 public:
  // The heap outlives this.
  explicit StubReserve(Heap& heap) : heap_(heap) {}

  // Takes note that blocks of this class will be taken.
  void Want(uint32_t block_class) {
    MutexLock lock(mutex_);
    wanted_[block_class] = true;
  }
  // Returns a block of this class: a new one, or else one of the reserve, or nullptr.
  std::byte* Take(uint32_t block_class) {
    if (std::byte* const block = heap_.Allocate(SizeClassBytes(block_class))) return block;
    MutexLock lock(mutex_);
    wanted_[block_class] = true;
    std::vector<std::byte*>& blocks = blocks_[block_class];
    if (blocks.empty()) return nullptr;
    std::byte* const block = blocks.back();
    blocks.pop_back();
    return block;
  }
  // Takes what is missing from the heap. Returns false if there is too little left of a class.
  bool Fill() {
    MutexLock lock(mutex_);
    bool enough = true;
    for (uint32_t block_class = 0; block_class < kClasses; ++block_class) {
      std::vector<std::byte*>& blocks = blocks_[block_class];
      while (wanted_[block_class] && blocks.size() < kBlocks) {
        std::byte* const block = heap_.Allocate(SizeClassBytes(block_class));
        if (block == nullptr) break;
        blocks.push_back(block);
      }
      enough &= !wanted_[block_class] || blocks.size() >= kBlocksMin;
    }
    return enough;
  }
  // Takes note that a stub found no block.
  void NoteShortage() { shortages_.fetch_add(1, std::memory_order_relaxed); }
  // Returns how many found none since the last call, if they are so many that it pays to make room
  // for others.
  uint64_t TakeShortages() {
    if (shortages_.load(std::memory_order_relaxed) < kShortagesMin) return 0;
    return shortages_.exchange(0, std::memory_order_relaxed);
  }
  uint64_t bytes() const {
    MutexLock lock(mutex_);
    uint64_t bytes = 0;
    for (uint32_t block_class = 0; block_class < kClasses; ++block_class) {
      bytes += blocks_[block_class].size() * SizeClassBytes(block_class);
    }
    return bytes;
  }

 private:
  static constexpr size_t kBlocks = 32;
  static constexpr size_t kBlocksMin = 8;
  static constexpr uint64_t kShortagesMin = 16;
  static constexpr uint32_t kClasses = SizeClassFor(StubBytes(kKeyBytesMax)) + 1;

  Heap& heap_;
  std::atomic<uint64_t> shortages_{0};  // relaxed: a hint
  mutable Mutex mutex_;
  std::array<std::vector<std::byte*>, kClasses> blocks_ GANNET_GUARDED_BY(mutex_);
  std::array<bool, kClasses> wanted_ GANNET_GUARDED_BY(mutex_){};
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_STUB_RESERVE_H_
