// Which part of the memory items of one size fill before the first write is refused, by an index
// that grows with them: the figures of docs/memory.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "softverbs/tests/support/sanitizer.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

constexpr size_t kLargeRegionBytes = 64 << 20;

// A server's idle thread comes by as often as this, in writes.
constexpr uint64_t kWritesPerTidy = 1000;

// The most bytes that an item may take in the region beside key and value.
double MostBeside(size_t value_bytes) {
  if (value_bytes == 32) return 42.0;
  if (value_bytes == 100) return 54.0;
  return value_bytes > 4096 ? 1000.0 : 85.0;
}

TEST(DefaultIndexTest, ItemsOfAnySizeFillTheMemory) {
  // A sanitizer takes ten times as long for each.
  const std::vector<size_t> all = {1, 16, 32, 48, 64, 100, 200, 1000, 1024, 3000, 64 << 10};
  const std::vector<size_t> some = {32, 1000, 64 << 10};
  for (const size_t value_bytes : test_support::kSanitizer ? some : all) {
    TestStore store(kLargeRegionBytes, /*index_slots=*/0, /*index_grows=*/true);
    const std::string value(value_bytes, 'v');
    std::string key(16, 'k');
    uint64_t items = 0, most_index_bytes = 0, tries = 0;
    while (true) {
      std::memcpy(key.data(), &items, sizeof(items));
      const ReplyStatus status = store.Put(key, value).status;
      if (status == ReplyStatus::kOk) ++items;
      const bool again = status == ReplyStatus::kTryAgain && ++tries < 100'000;
      if (status != ReplyStatus::kOk && !again) {
        EXPECT_EQ(status, ReplyStatus::kHeapFull) << value_bytes;
        break;
      }
      if (again || items % kWritesPerTidy == 0) store->Tidy(At(1));
      const Superblock superblock = store->superblock();
      const uint64_t next = superblock.next_index.homes == 0 ? 0 : superblock.next_index.bytes();
      most_index_bytes = std::max(most_index_bytes, superblock.index.bytes() + next);
    }
    const StatsReply stats = store.Stats();
    const uint64_t index_bytes = store->superblock().index.bytes();
    const double filled =
        100.0 * static_cast<double>(stats.heap_bytes + index_bytes) / kLargeRegionBytes;
    const double per_item = static_cast<double>(kLargeRegionBytes) / static_cast<double>(items) -
                            static_cast<double>(16 + value_bytes);
    std::printf(
        "values of %4zu bytes: %7lu items, %.1f %% of the memory with the index, %.1f %% without; "
        "%.1f bytes an item beside key and value; index %.1f %% full, %.1f %% of the memory, %.1f "
        "%% "
        "at most while it grew, %lu times\n",
        value_bytes, items, filled,
        100.0 * static_cast<double>(stats.heap_bytes) / kLargeRegionBytes, per_item,
        100.0 * static_cast<double>(items) / static_cast<double>(stats.slots_total),
        100.0 * static_cast<double>(index_bytes) / kLargeRegionBytes,
        100.0 * static_cast<double>(most_index_bytes) / kLargeRegionBytes, stats.index_growths);
    EXPECT_GE(filled, 95.0) << value_bytes;
    EXPECT_LE(per_item, MostBeside(value_bytes)) << value_bytes;
  }
}

}  // namespace
}  // namespace gannet
