#ifndef GANNET_COMMON_BASE_PARTS_H_
#define GANNET_COMMON_BASE_PARTS_H_

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace gannet {

// Returns in how many parts to divide the work on `n` things: one for each core, but none with
// fewer than `least` things.
inline uint32_t PartsFor(uint64_t n, uint64_t least) {
  constexpr uint64_t kPartsMax = 8;
  const uint64_t cores = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<uint32_t>(std::clamp<uint64_t>(n / least, 1, std::min(cores, kPartsMax)));
}

// Divides [0, n) into equal parts, and calls `work(part, first, end)` for each. The caller's thread
// does the first part, and a new thread each other one. Returns when all are done. What they stored
// happens before the return.
template <class Work>
void InParts(uint64_t n, uint32_t parts, Work work) {
  const auto begin_of = [&](uint32_t part) {
    return n / parts * part + std::min<uint64_t>(part, n % parts);
  };
  std::vector<std::thread> threads;
  threads.reserve(parts - 1);
  for (uint32_t part = 1; part < parts; ++part) {
    threads.emplace_back([&, part] { work(part, begin_of(part), begin_of(part + 1)); });
  }
  work(0, begin_of(0), begin_of(1));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace gannet

#endif  // GANNET_COMMON_BASE_PARTS_H_
