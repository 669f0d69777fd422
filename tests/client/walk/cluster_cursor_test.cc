#include "client/walk/cluster_cursor.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

TEST(ClusterCursorTest, BringsBackWhatItWasMadeOf) {
  for (const uint64_t revision :
       {uint64_t{0}, uint64_t{7}, uint64_t{65'534}, uint64_t{65'535}, uint64_t{1'000'000}}) {
    const ClusterCursor made = {.position = 5 * ClusterCursor::kStep,
                                .group = 1023,
                                .revision_bits = ClusterCursor::RevisionBits(revision)};
    const uint64_t bits = made.Encode();
    EXPECT_EQ(bits & 0xff, 0u) << "they are the caller's";
    const ClusterCursor read = ClusterCursor::Decode(bits);
    EXPECT_EQ(read.position, made.position);
    EXPECT_EQ(read.group, made.group);
    EXPECT_EQ(read.revision_bits, made.revision_bits);
  }
}

// 0 is the end of a walk.
TEST(ClusterCursorTest, NoneIsZero) {
  for (uint64_t revision = 0; revision < 200'000; ++revision) {
    const ClusterCursor begin = {.revision_bits = ClusterCursor::RevisionBits(revision)};
    ASSERT_NE(begin.Encode(), 0u) << revision;
    ASSERT_NE(ClusterCursor::RevisionBits(revision), ClusterCursor::RevisionBits(revision + 1));
  }
  EXPECT_EQ(ClusterCursor::Decode(0).revision_bits, 0u) << "of no map";
}

}  // namespace
}  // namespace gannet
