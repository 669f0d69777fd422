#include "server/group/replica/commit.h"

#include <gtest/gtest.h>

#include "tests/server/group/replica/group_times.h"

namespace gannet {
namespace {

constexpr int64_t kLater = 2 * kTimes.lease_ns;

// A lease that began at 0 and that backups 1 and 2 gave.
PrimaryLease SomeLease() {
  PrimaryLease lease(kTimes);
  lease.Count(1, Boot(0));
  lease.Count(2, Boot(0));
  const uint64_t beacon = lease.OnSend(Boot(0));
  lease.OnAnswer(1, beacon, Boot(1));
  lease.OnAnswer(2, beacon, Boot(1));
  return lease;
}

TEST(CommitTest, CommitsWhatAllHave) {
  const PrimaryLease lease = SomeLease();
  Commit commit(80);
  commit.Count(1, 80);
  commit.Count(2, 80);
  commit.OnCompleted(1, 240);
  EXPECT_EQ(commit.Advance(400, lease, Boot(2)), 80u);
  commit.OnCompleted(2, 160);
  EXPECT_EQ(commit.Advance(400, lease, Boot(2)), 160u);
  commit.OnCompleted(3, 400);
  EXPECT_EQ(commit.Advance(400, lease, Boot(2)), 160u) << "3 is not counted";
  commit.Uncount(2);
  EXPECT_EQ(commit.Advance(400, lease, Boot(2)), 240u);
  commit.Uncount(1);
  EXPECT_EQ(commit.Advance(400, lease, Boot(2)), 400u) << "it is alone";
}

TEST(CommitTest, CommitsNothingOnceTheLeaseIsOver) {
  const PrimaryLease lease = SomeLease();
  Commit commit(0);
  commit.Count(1, 0);
  commit.Count(2, 0);
  commit.OnCompleted(1, 80);
  commit.OnCompleted(2, 80);
  EXPECT_EQ(commit.Advance(80, lease, Boot(kLater)), 0u);
  EXPECT_EQ(commit.Advance(80, lease, Boot(2)), 80u);
}

TEST(CommitTest, NeverGoesBackForAJoinerAndKnowsWhenThatHasAll) {
  const PrimaryLease lease = SomeLease();
  Commit commit(0);
  commit.Count(1, 160);
  EXPECT_EQ(commit.Advance(240, lease, Boot(2)), 160u);
  EXPECT_FALSE(commit.HasAllCommitted(7)) << "it is not counted";
  commit.Count(7, 80);
  EXPECT_EQ(commit.Advance(240, lease, Boot(2)), 160u);
  EXPECT_FALSE(commit.HasAllCommitted(7));
  commit.OnCompleted(7, 160);
  EXPECT_TRUE(commit.HasAllCommitted(7));
  commit.OnCompleted(1, 240);
  EXPECT_EQ(commit.Advance(240, lease, Boot(2)), 160u) << "nothing more without the joiner";
}

}  // namespace
}  // namespace gannet
