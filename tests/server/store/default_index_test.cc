// Which part of the memory items of one size fill before the first write is refused, and whether
// heap or index is full then: the figures of docs/memory-layout.md.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/server/store/store_fixture.h"

namespace gannet {
namespace {

constexpr size_t kRegionBytes = 64 << 20;

TEST(DefaultIndexTest, SmallItemsFillTheMemoryToo) {
  const struct {
    size_t value_bytes;
    int share;  // percent of the region that is in items when the first write is refused
    ReplyStatus full;
  } cases[] = {{16, 60, ReplyStatus::kIndexFull}, {32, 78, ReplyStatus::kIndexFull},
               {48, 87, ReplyStatus::kHeapFull},  {64, 87, ReplyStatus::kHeapFull},
               {200, 87, ReplyStatus::kHeapFull}, {3000, 87, ReplyStatus::kHeapFull}};
  for (const auto& expected : cases) {
    TestStore store(kRegionBytes);
    const std::string value(expected.value_bytes, 'v');
    std::string key(16, 'k');
    ReplyStatus status = ReplyStatus::kOk;
    for (uint64_t i = 0; status == ReplyStatus::kOk; ++i) {
      std::memcpy(key.data(), &i, sizeof(i));
      status = store.Put(key, value).status;
    }
    const StatsReply stats = store.Stats();
    const double share = 100.0 * stats.heap_bytes / kRegionBytes;
    std::printf("values of %4zu bytes: %7lu items, %.1f %% of the memory, %s full\n",
                expected.value_bytes, stats.items, share,
                status == ReplyStatus::kIndexFull ? "index" : "heap");
    EXPECT_GE(share, expected.share) << expected.value_bytes;
    EXPECT_EQ(status, expected.full) << expected.value_bytes;
  }
}

}  // namespace
}  // namespace gannet
