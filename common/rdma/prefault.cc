#include "common/rdma/prefault.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

namespace gannet {
namespace {

int TouchPiece(std::span<std::byte> piece, uint64_t page_bytes) {
  // Unlike touching the pages, this reports a lack of memory instead of causing a SIGBUS.
  if (madvise(piece.data(), piece.size(), MADV_POPULATE_WRITE) == 0) return 0;
  if (errno != EINVAL) return errno;
  auto* bytes = reinterpret_cast<volatile char*>(piece.data());  // a kernel before 5.14
  for (uint64_t at = 0; at < piece.size(); at += page_bytes) bytes[at] = bytes[at];
  return 0;
}

}  // namespace

int Prefault(std::span<std::byte> memory, uint64_t page_bytes, const PrefaultHooks& hooks) {
  // Joining the threads makes their stores visible, so relaxed suffices for both.
  std::atomic<uint64_t> next{0};
  std::atomic<int> error{0};
  const auto touch_pieces = [&] {
    while (error.load(std::memory_order_relaxed) == 0) {
      const uint64_t begin = next.fetch_add(kPrefaultPieceBytes, std::memory_order_relaxed);
      if (begin >= memory.size()) return;
      const auto piece =
          memory.subspan(begin, std::min(kPrefaultPieceBytes, memory.size() - begin));
      const int failed = hooks.touch ? hooks.touch(piece) : TouchPiece(piece, page_bytes);
      if (failed != 0) return error.store(failed, std::memory_order_relaxed);
      if (hooks.on_ready) hooks.on_ready(piece.size());
    }
  };
  const uint64_t pieces = (memory.size() + kPrefaultPieceBytes - 1) / kPrefaultPieceBytes;
  const uint64_t cores = std::min(std::thread::hardware_concurrency(), kPrefaultThreadsMax);
  std::vector<std::thread> others;
  for (uint64_t i = 1; i < std::min(cores, pieces); ++i) others.emplace_back(touch_pieces);
  touch_pieces();
  for (std::thread& thread : others) thread.join();
  return error.load(std::memory_order_relaxed);
}

}  // namespace gannet
