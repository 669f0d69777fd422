#include "client/walk/cluster_cursor.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

constexpr uint64_t kRevisions[] = {0, 7, 4094, 4095, 1'000'000};
constexpr uint64_t kNumbersOfGroups[] = {1, 2, 3, 1023, 1024};

TEST(ClusterCursorTest, BringsBackWhatItWasMadeOf) {
  for (const uint64_t groups : kNumbersOfGroups) {
    for (const uint64_t revision : kRevisions) {
      const uint64_t step = uint64_t{1} << (64 - ClusterCursor::PositionBits(groups));
      const ClusterCursor made = {.position = ~(step - 1),
                                  .group = groups - 1,
                                  .revision_bits = ClusterCursor::RevisionBits(revision)};
      const uint64_t cursor = made.Encode(groups);
      EXPECT_EQ(cursor >> Walker::kPositionBits, 0u) << groups;
      const ClusterCursor read = ClusterCursor::Decode(cursor, groups);
      EXPECT_EQ(read.position, made.position);
      EXPECT_EQ(read.group, made.group);
      EXPECT_EQ(read.revision_bits, made.revision_bits);
    }
  }
}

TEST(ClusterCursorTest, IsSmallIfTheIndexIs) {
  // Three quarters of an index with 64 homes.
  EXPECT_LT(ReversedBits(uint64_t{3} << 62), 64u);
  const ClusterCursor made = {.position = uint64_t{3} << 62, .group = 1, .revision_bits = 1};
  EXPECT_LT(made.Encode(2), 64u * 2 * 4096);
}

// 0 is the end of a walk.
TEST(ClusterCursorTest, NoneIsZero) {
  for (uint64_t revision = 0; revision < 20'000; ++revision) {
    const ClusterCursor begin = {.revision_bits = ClusterCursor::RevisionBits(revision)};
    ASSERT_NE(begin.Encode(3), 0u) << revision;
    ASSERT_NE(ClusterCursor::RevisionBits(revision), ClusterCursor::RevisionBits(revision + 1));
  }
  EXPECT_EQ(ClusterCursor::Decode(0, 3).revision_bits, 0u) << "of no map";
}

}  // namespace
}  // namespace gannet
