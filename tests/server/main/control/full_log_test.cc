#include "server/main/control/full_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/boot_time.h"
#include "common/base/clock.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(FullLogTest, SaysNothingWhileNothingIsRefused) {
  FullLog log;
  for (int64_t second = 0; second < 1000; ++second) {
    const FullLog::Lines lines = log.Report({}, BootTime::FromNs(second * kNsPerSecond));
    EXPECT_FALSE(lines.heap || lines.index);
  }
}

TEST(FullLogTest, SaysWhichIsFullAndWhichFlagHelps) {
  FullLog log;
  const StatsReply stats{.slots_used = 95,
                         .slots_total = 100,
                         .heap_bytes = 1000,
                         .heap_total = 1001,
                         .refused_heap_full = 3,
                         .refused_index_full = 4};
  const FullLog::Lines lines = log.Report(stats, BootTime::FromNs(1));
  ASSERT_TRUE(lines.heap && lines.index);
  EXPECT_THAT(*lines.heap, HasSubstr("refused 3 writes: the memory is full (1000 of 1001 bytes"));
  EXPECT_THAT(*lines.heap, HasSubstr("--memory, or with --on_full=evict"));
  EXPECT_THAT(*lines.index, HasSubstr("refused 4 writes: the index is full (95 of 100 slots"));
  EXPECT_THAT(*lines.index, HasSubstr("--index_slots"));
}

TEST(FullLogTest, DoesNotAdviseToEvictWhoEvictsAlready) {
  FullLog log;
  const StatsReply stats{.refused_heap_full = 1, .eviction_watermark = 10};
  EXPECT_THAT(log.Report(stats, BootTime::FromNs(1)).heap.value_or(""),
              Not(HasSubstr("--on_full")));
}

TEST(FullLogTest, SaysItOnceAMinuteWithAllThatWereRefusedSince) {
  FullLog log;
  StatsReply stats{};
  int lines = 0;
  for (int64_t second = 0; second < 180; ++second) {
    stats.refused_index_full += 10;
    const FullLog::Lines said = log.Report(stats, BootTime::FromNs(second * kNsPerSecond));
    EXPECT_FALSE(said.heap);
    if (!said.index) continue;
    EXPECT_EQ(second % 60, 0);
    EXPECT_THAT(*said.index, HasSubstr(second == 0 ? "refused 10 writes" : "refused 600 writes"));
    ++lines;
  }
  EXPECT_EQ(lines, 3);
}

}  // namespace
}  // namespace gannet
