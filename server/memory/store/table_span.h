#ifndef GANNET_SERVER_MEMORY_STORE_TABLE_SPAN_H_
#define GANNET_SERVER_MEMORY_STORE_TABLE_SPAN_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "server/memory/heap/heap.h"
#include "server/memory/store/items.h"
#include "server/memory/store/span_clearer.h"

namespace gannet {

// The span that is being cleared for a table of the index. What is free in it is claimed, so that
// writes take other memory.
//
// Thread safety: one thread at a time.
class TableSpan {
 public:
  // Both outlive it.
  TableSpan(Items& items, SpanClearer& clearer) : items_(items), clearer_(clearer) {}

  // A step in the background: clears one piece of memory for a table, if more than that is free,
  // but in pieces that are too short. Returns whether there is more to do. `table_bytes` is 0 if no
  // table lacks room. REQUIRES: no lock is held.
  bool ClearFor(uint64_t table_bytes);

 private:
  // Returns false if it does not pay to clear any.
  bool Choose(uint64_t table_bytes);
  // Claims what is free in these whole runs of the span.
  void Claim(std::span<std::byte> runs);
  // Ends a try: what was claimed is free again.
  void Release();

  Items& items_;
  SpanClearer& clearer_;
  std::span<std::byte> memory_;  // empty: there is none
  uint64_t cleared_ = 0;         // bytes, in this pass
  uint32_t passes_ = 0;
  Heap::Claims claims_;
  uint64_t claimed_ = 0;  // bytes
  uint64_t tries_ = 0;
  uint32_t failures_ = 0;    // one after the other
  uint64_t freed_next_ = 0;  // the next try is when the heap has freed so much
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_TABLE_SPAN_H_
