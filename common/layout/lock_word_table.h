#ifndef GANNET_COMMON_LAYOUT_LOCK_WORD_TABLE_H_
#define GANNET_COMMON_LAYOUT_LOCK_WORD_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/layout/key_hash.h"

namespace gannet {

// Where a server's lock words are. Its threads load them here. They move to other memory if another
// device begins to swap them (docs/rails.md), and are free there: all locks are lost.
//
// Who may still load an old word finds the memory of before, which stays mapped. A thread loads no
// old word any more once it took a message that was sent to it behind MoveTo.
class LockWordTable {
 public:
  explicit LockWordTable(std::span<const uint64_t> words)
      : words_(words.data()), size_(words.size()) {}

  size_t size() const { return size_; }
  // Acquire: whoever finds other memory finds it as it was when the words moved there.
  const uint64_t& operator[](size_t index) const {
    return words_.load(std::memory_order_acquire)[index];
  }
  // Returns the present word of a key. Acquire: nobody sees a change that follows before this load.
  uint64_t WordOf(KeyHash hash) const {
    return __atomic_load_n(&(*this)[hash.LockIndex(size_)], __ATOMIC_ACQUIRE);
  }
  // REQUIRES: as many words as before. They are free, and outlive the table.
  void MoveTo(std::span<const uint64_t> words) {
    words_.store(words.data(), std::memory_order_release);
  }

 private:
  std::atomic<const uint64_t*> words_;
  const size_t size_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_LOCK_WORD_TABLE_H_
