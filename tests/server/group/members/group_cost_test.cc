#include <gtest/gtest.h>

#include "common/protocol/partition_map.h"
#include "server/log/changes/record.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/server/group/members/group_fixture.h"

namespace gannet {
namespace {

// The ctest entries group_put_instructions_* bound what ServePuts and FollowPuts execute.
constexpr int kPuts = 1024;

// The measured part of a backup, as ServePuts is that of the primary.
__attribute__((noinline)) void FollowPuts(Member& member, BootTime now) { member.Poll(now); }

class GroupCostTest : public GroupPutTest {
 protected:
  // Runs PUTs of 64 B to keys that exist, `depth` of them in each Poll.
  void Run(int depth) {
    RawPeer peer(this);
    ASSERT_TRUE(peer.Connect());
    for (int i = 0; i < kPuts; ++i) ASSERT_EQ(peer.Put(Key(i), value_), ReplyStatus::kOk);
    Worker& worker = *server().workers()[0];
    const uint64_t rpcs = stats().rpcs;
    const uint64_t begin = primary().end;
    ASSERT_TRUE(StepUntil([&] { return applied() == begin; }));
    FollowApart();
    for (int i = 0; i < kPuts; i += depth) {
      // The backup applies what was committed, and the lease goes on.
      FollowPuts(*backup(0).member(), MachineBootTime());
      Step();
      for (int j = 0; j < depth; ++j) Send(peer, Key(i + j));
      ASSERT_TRUE(peer.WaitSent());
      ServePuts(worker, now());
      ASSERT_EQ(stats().rpcs, rpcs + i + depth) << "not all in one Poll";
      ASSERT_FALSE(worker.holds_replies()) << "not all were answered in the Poll that served them";
      for (int j = 0; j < depth; ++j) ASSERT_EQ(peer.Receive()->status(), ReplyStatus::kOk);
    }
    // All but the last ones: a record tells the backup what was committed before it.
    const uint64_t record_bytes = (primary().end - begin) / kPuts;
    EXPECT_GE(applied(), primary().end - 2 * depth * record_bytes);
  }
  const test_support::TemporaryDirectory directory_;
  uint64_t applied() { return backup(0).member()->Look().applied; }
};

TEST_F(GroupCostTest, ThirtyTwoAtOnceOneBackup) {
  StartGroup(1);
  if (!HasFatalFailure()) Run(32);
}

// Each message's partition is judged, as it is in a cluster of two groups.
TEST_F(GroupCostTest, ThirtyTwoAtOnceBesideAnotherGroup) {
  StartGroup(1);
  if (HasFatalFailure()) return;
  GroupPartitions partitions = {.revision = 1, .alone = false};
  for (int i = 0; i < kPuts; ++i) partitions.served.set(PartitionOf(Key(i)));
  ASSERT_FALSE(partitions.served.all());
  shared().SetPartitions(partitions);
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  int other = kPuts;
  while (partitions.served[PartitionOf(Key(other))]) ++other;
  ASSERT_TRUE(StepUntil([&] { return peer.Put(Key(other), value_) == ReplyStatus::kElsewhere; }));
  Run(32);
}

// What the primary's worker does for its disk. The disk's own thread is not measured.
TEST_F(GroupCostTest, ThirtyTwoAtOnceWithADisk) {
  UseDisk({.data = directory_.path(), .sync = Journal::Sync::kInterval});
  StartGroup(1);
  if (HasFatalFailure()) return;
  const uint64_t before = server().disk()->appended();
  Run(32);
  EXPECT_GE(server().disk()->appended() - before, 2 * kPuts * RecordBytes(16, value_.size()));
  EXPECT_EQ(stats().disk_refused, 0u);
}

// Of items that are not leased, at a group whose primary leases others.
class LeasingGroupCostTest : public GroupCostTest {
 protected:
  LeasingGroupCostTest() {
    set_options_ = [](Server::Options* options) { options->item_lease_ms = 20; };
  }
};

TEST_F(LeasingGroupCostTest, ThirtyTwoAtOnceOneBackup) {
  StartGroup(1);
  if (HasFatalFailure()) return;
  ASSERT_NE(server().store().leases(), nullptr);
  Run(32);
}

}  // namespace
}  // namespace gannet
