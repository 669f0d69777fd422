#include "common/rdma/prefault.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "common/rdma/memory.h"

namespace gannet {
namespace {

// Returns a span that is never touched: the hook replaces touching.
std::span<std::byte> Imagined(uint64_t bytes) {
  return {reinterpret_cast<std::byte*>(uint64_t{1} << 40), bytes};
}

TEST(PrefaultTest, TouchesEveryByteOnceAndTellsWhatIsReady) {
  const uint64_t bytes = 5 * kPrefaultPieceBytes + 4096;
  std::mutex mutex;
  std::map<uint64_t, uint64_t> touched;  // begin -> bytes
  std::atomic<uint64_t> ready{0};
  const auto memory = Imagined(bytes);
  const PrefaultHooks hooks{.on_ready = [&](uint64_t n) { ready += n; },
                            .touch =
                                [&](std::span<std::byte> piece) {
                                  const std::lock_guard lock(mutex);
                                  const uint64_t begin = piece.data() - memory.data();
                                  EXPECT_TRUE(touched.emplace(begin, piece.size()).second);
                                  return 0;
                                }};
  EXPECT_EQ(Prefault(memory, 4096, hooks), 0);
  uint64_t end = 0;
  for (const auto& [begin, size] : touched) {
    EXPECT_EQ(begin, end);
    end = begin + size;
  }
  EXPECT_EQ(end, bytes);
  EXPECT_EQ(ready, bytes);
}

TEST(PrefaultTest, TouchesAsManyPiecesAtOnceAsThereAreCores) {
  const uint32_t wanted = std::min(std::thread::hardware_concurrency(), kPrefaultThreadsMax);
  std::mutex mutex;
  std::condition_variable changed;
  uint32_t at_once = 0;
  const PrefaultHooks hooks{.touch = [&](std::span<std::byte>) {
    std::unique_lock lock(mutex);
    ++at_once;
    changed.notify_all();
    const auto all_here = [&] { return at_once == wanted; };
    return changed.wait_for(lock, std::chrono::seconds(60), all_here) ? 0 : ETIMEDOUT;
  }};
  EXPECT_EQ(Prefault(Imagined(wanted * kPrefaultPieceBytes), 4096, hooks), 0);
}

TEST(PrefaultTest, StopsAtAnErrorAndReturnsIt) {
  std::atomic<uint64_t> ready{0};
  const PrefaultHooks hooks{.on_ready = [&](uint64_t n) { ready += n; },
                            .touch = [](std::span<std::byte>) { return ENOMEM; }};
  EXPECT_EQ(Prefault(Imagined(1000 * kPrefaultPieceBytes), 4096, hooks), ENOMEM);
  EXPECT_EQ(ready, 0u);
}

TEST(PrefaultTest, SharedMemoryTellsAnErrorInWords) {
  const auto memory = SharedMemory::Create(
      {.bytes = 4096, .prefault_hooks = {.touch = [](std::span<std::byte>) { return ENOMEM; }}});
  EXPECT_TRUE(absl::IsResourceExhausted(memory.status())) << memory.status();
}

}  // namespace
}  // namespace gannet
