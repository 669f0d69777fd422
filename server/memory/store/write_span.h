#ifndef GANNET_SERVER_MEMORY_STORE_WRITE_SPAN_H_
#define GANNET_SERVER_MEMORY_STORE_WRITE_SPAN_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/base/mutex.h"
#include "server/memory/heap/heap.h"
#include "server/memory/store/later_evictions.h"
#include "server/memory/store/span_clearer.h"

namespace gannet {

// The span that is being cleared for a long item, or for any if free memory is scattered, while
// evictions or values wait for the disk. What becomes free in it is claimed, so that no other write
// takes it.
//
// Thread safety: as the store's. REQUIRES, in all methods: no lock is held.
class WriteSpan {
 public:
  // Both outlive it.
  WriteSpan(Heap& heap, SpanClearer& clearer) : heap_(heap), clearer_(clearer) {}

  // Evictions wait, from now on. nullptr: they do not. While nobody else uses it.
  void EvictLater(const LaterEvictions* later) { later_ = later; }

  // Clears the span that is there, and others. Returns a block, or nullptr if something stays: then
  // a later call goes on.
  std::byte* ClearFor(uint64_t item_bytes);
  // A step in the background. Gives up a span that no write has asked for of late.
  void Look();

 private:
  // Has what is in it evicted or moved, and notes when that has happened.
  void LookThrough() GANNET_REQUIRES(mutex_);
  // Claims what is free in it. Returns whether that is all.
  bool Claim() GANNET_REQUIRES(mutex_);
  void GiveUp() GANNET_REQUIRES(mutex_);

  struct State {
    std::span<std::byte> memory;  // empty: there is none
    Heap::Claims claims;
    // When it was last looked through: LaterEvictions::begun_bytes, and what stayed for a disk.
    uint64_t evicted_to = 0;
    uint32_t stay = 0;
    uint32_t passes = 0;
    uint32_t steps = 0;  // in the background, since a write asked for it
  };

  Heap& heap_;
  SpanClearer& clearer_;
  const LaterEvictions* later_ = nullptr;
  Mutex mutex_;  // taken before a key's lock
  State span_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_WRITE_SPAN_H_
