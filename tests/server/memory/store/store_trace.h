#ifndef GANNET_TESTS_SERVER_MEMORY_STORE_STORE_TRACE_H_
#define GANNET_TESTS_SERVER_MEMORY_STORE_STORE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace gannet {

// Records every store that a thread makes to a region, in program order, as the machine executes
// it. The region is write-protected, and each faulting store is single-stepped and recorded. So a
// test can show a reader any word as it was at any moment of the production code's writing.
//
// x86-64 Linux. One StoreTrace at a time, one writing thread; the region is page aligned.
class StoreTrace {
 public:
  static bool Supported();

  // Starts recording. The present contents of the region are the state at time 0.
  explicit StoreTrace(std::span<std::byte> region);
  ~StoreTrace();
  StoreTrace(const StoreTrace&) = delete;
  StoreTrace& operator=(const StoreTrace&) = delete;

  // Stops recording; the region is writable again.
  void Stop();

  // How many stores were made so far, which is the time.
  uint32_t now() const { return static_cast<uint32_t>(stores_.size()); }
  // Returns the 8-byte word at `offset` after the first `time` stores. REQUIRES: Stop was called.
  uint64_t WordAt(uint64_t offset, uint32_t time) const;
  // Returns the offset of the word that store number `i` (from 0) changed.
  uint64_t OffsetOf(uint32_t i) const { return stores_[i].offset; }
  // Returns whether replaying all stores gives the present memory, so that no store went unseen.
  bool Complete() const;

 private:
  struct Store {
    uint64_t offset;
    uint64_t value;
  };
  struct Value {
    uint32_t time;  // stores done when the word got it
    uint64_t value;
  };
  static void OnFault(int signal, void* info, void* context);
  static void OnStep(int signal, void* info, void* context);
  void Protect(uint64_t offset, uint64_t bytes, bool writable);

  const std::span<std::byte> region_;
  std::vector<std::byte> initial_;
  std::vector<Store> stores_;
  std::unordered_map<uint64_t, std::vector<Value>> words_;  // by offset, in order of time
  uint64_t stepping_ = 0;                                   // offset of the word being stored
  bool recording_ = false;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_MEMORY_STORE_STORE_TRACE_H_
