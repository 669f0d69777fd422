#ifndef GANNET_SERVER_MEMORY_HEAP_HEAP_USE_H_
#define GANNET_SERVER_MEMORY_HEAP_HEAP_USE_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "common/layout/size_class.h"

namespace gannet {

// How much of a heap is in use.
//
// Thread safety: any thread. Relaxed: no other memory depends on it.
class HeapUse {
 public:
  struct OfClass {
    uint64_t blocks = 0;
    uint64_t bytes = 0;
  };

  // Bytes of all blocks in use.
  uint64_t allocated_bytes() const {
    const uint64_t freed = freed_bytes();
    return taken_bytes_.load(std::memory_order_relaxed) - freed;
  }
  // Bytes of all blocks in use, and of tables.
  uint64_t occupied_bytes() const { return allocated_bytes() + table_bytes(); }
  // Bytes of all blocks that were ever freed.
  uint64_t freed_bytes() const { return freed_bytes_.load(std::memory_order_relaxed); }
  uint64_t table_bytes() const { return table_bytes_.load(std::memory_order_relaxed); }
  // Those blocks of a class that are runs of their own.
  OfClass RunsOf(uint32_t size_class) const {
    return {runs_[size_class].blocks.load(std::memory_order_relaxed),
            runs_[size_class].bytes.load(std::memory_order_relaxed)};
  }

  void Took(uint64_t bytes) { taken_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void Freed(uint64_t bytes) { freed_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void TookRun(uint32_t size_class, uint64_t bytes) {
    Took(bytes);
    AddRun(size_class, bytes);
  }
  void FreedRun(uint32_t size_class, uint64_t bytes) {
    Freed(bytes);
    RemoveRun(size_class, bytes);
  }
  // A run became a shorter one, of another class.
  void ShrankRun(uint32_t old_class, uint64_t old_bytes, uint32_t size_class, uint64_t bytes) {
    Freed(old_bytes - bytes);
    RemoveRun(old_class, old_bytes);
    AddRun(size_class, bytes);
  }
  void TookTable(uint64_t bytes) { table_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void FreedTable(uint64_t bytes) { table_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  struct Runs {
    std::atomic<uint64_t> blocks{0};
    std::atomic<uint64_t> bytes{0};
  };

  void AddRun(uint32_t size_class, uint64_t bytes) {
    runs_[size_class].blocks.fetch_add(1, std::memory_order_relaxed);
    runs_[size_class].bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  void RemoveRun(uint32_t size_class, uint64_t bytes) {
    runs_[size_class].blocks.fetch_sub(1, std::memory_order_relaxed);
    runs_[size_class].bytes.fetch_sub(bytes, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> taken_bytes_{0};
  std::atomic<uint64_t> freed_bytes_{0};
  std::atomic<uint64_t> table_bytes_{0};
  std::array<Runs, kSizeClassMax + 1> runs_{};
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_HEAP_HEAP_USE_H_
