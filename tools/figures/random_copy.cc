// random_copy FOOTPRINT BYTES: measures how long one core takes to copy BYTES from a random place
// in FOOTPRINT bytes of memory, one copy after the other. Prints JSON on stdout. No lookup of items
// in memory of this size can be faster.

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "common/base/align.h"
#include "common/base/clock.h"
#include "common/base/hash.h"

namespace gannet {
namespace {

constexpr uint64_t kCopies = 20'000;
constexpr int kRounds = 100;  // the fastest round counts: other work can only slow a round down

int Run(uint64_t footprint, uint64_t bytes) {
  void* memory = mmap(nullptr, footprint, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "random_copy: no %lu bytes: %s\n", footprint, std::strerror(errno));
    return 1;
  }
  std::vector<std::byte> copy(bytes);
  const auto* from = static_cast<const std::byte*>(memory);
  const uint64_t places = (footprint - bytes) / 64 + 1;
  uint64_t seen = 0;
  int64_t ns = INT64_MAX;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t start_ns = MonotonicNs();
    for (uint64_t i = 0; i < kCopies; ++i) {
      // The copied bytes decide the next place, so that no copy begins before the last one ended.
      const uint64_t place = MapToRange(Mix64(round * kCopies + i + 1 + seen), places);
      std::memcpy(copy.data(), from + 64 * place, bytes);
      seen += static_cast<uint64_t>(copy[bytes - 1]);
    }
    ns = std::min(ns, MonotonicNs() - start_ns);
  }
  std::printf("{\"footprint\": %lu, \"bytes\": %lu, \"copies\": %lu, \"ns_per_copy\": %.1f}\n",
              footprint, bytes, kCopies, static_cast<double>(ns) / kCopies);
  return 0;
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  const uint64_t footprint = argc == 3 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const uint64_t bytes = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (bytes == 0 || footprint < bytes) {
    std::fprintf(stderr, "usage: random_copy FOOTPRINT BYTES\n");
    return 2;
  }
  return gannet::Run(footprint, bytes);
}
