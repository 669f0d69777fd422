#ifndef GANNET_COMMON_RDMA_PREFAULT_H_
#define GANNET_COMMON_RDMA_PREFAULT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace gannet {

struct PrefaultHooks {
  // Called when so many more bytes have their pages. Several threads may call it at once.
  std::function<void(uint64_t bytes)> on_ready;
  // For tests: replaces asking the kernel for the pages of a piece. Returns 0 or an errno.
  std::function<int(std::span<std::byte> piece)> touch;
};

inline constexpr uint64_t kPrefaultPieceBytes = 64 << 20;
inline constexpr uint32_t kPrefaultThreadsMax = 32;

// Makes the kernel give a writable mapping all its pages now, so that there is no page fault later,
// and no surprise by the OOM killer. Does not change the contents. Returns 0 or an errno.
//
// Most of the time goes into the kernel's zeroing of pages. So pieces of the memory are touched in
// parallel, by as many threads as this process has cores. Memory of one piece is touched by the
// caller's own thread.
int Prefault(std::span<std::byte> memory, uint64_t page_bytes, const PrefaultHooks& hooks = {});

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_PREFAULT_H_
