// The primary of a group from which partitions move to another one: what it does for a receiver,
// and how it ends what a map has closed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/auth/auth_file.h"
#include "server/group/replica/partition_end.h"
#include "softverbs/tests/support/key_file.h"
#include "tests/server/group/members/group_fixture.h"
#include "tests/server/group/members/test_receiver.h"

namespace gannet {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::string kMovesAway = "moves";
const std::string kStays = "stays";

// All partitions are of the group. That of kMovesAway is closed.
GroupPartitions Closed(uint64_t revision) {
  GroupPartitions partitions = {.revision = revision, .lost = revision, .alone = false};
  partitions.served.set();
  partitions.served[PartitionOf(kMovesAway)] = false;
  return partitions;
}

class GiverTest : public GroupPutTest {
 protected:
  void TearDown() override {
    for (const auto& receiver : receivers_) {
      EXPECT_TRUE(GroupPutTest::StepUntil([&] { return receiver->Close(); }));
    }
    GroupPutTest::TearDown();
  }
  // The leases' clock stands still but for what the test skips, so a slow machine changes nothing.
  BootTime lease_now() const override { return began_ + skipped_ns_; }
  void StartGroup(size_t backups) {
    step_ns_ = kNsPerMs / 10;  // a backup that joins tries again from time to time
    GroupPutTest::StartGroup(backups);
    step_ns_ = 0;
  }
  void Step() override {
    skipped_ns_ += step_ns_;
    GroupPutTest::Step();
    for (const auto& receiver : receivers_) receiver->Poll(slow_);
  }
  // Begins to connect.
  TestReceiver& AddReceiver(uint64_t ring_bytes = 0) {
    const uint64_t bytes = ring_bytes == 0 ? shared().terms().ring_bytes : ring_bytes;
    receivers_.push_back(
        std::make_unique<TestReceiver>(server().address(), 1000 + receivers_.size(), bytes, key_));
    return *receivers_.back();
  }
  TestReceiver& WelcomedReceiver() {
    TestReceiver& receiver = AddReceiver();
    EXPECT_TRUE(StepUntil([&] { return receiver.welcome().has_value(); }));
    return receiver;
  }
  // Returns why a receiver is refused.
  std::string Refusal(const TestReceiver& receiver) {
    EXPECT_TRUE(StepUntil([&] { return !receiver.refusal().empty() || receiver.welcome(); }));
    return receiver.refusal();
  }
  void Close(uint64_t revision) { shared().SetPartitions(Closed(revision)); }
  bool StepUntilEnded(const TestReceiver& receiver, size_t times) {
    return StepUntil([&] { return receiver.ended().size() >= times; });
  }
  uint16_t LeaseMs(RawPeer& peer) { return peer.Call(RequestHeader{})->header.primary_lease_ms; }

  std::vector<std::unique_ptr<TestReceiver>> receivers_;
  const BootTime began_ = MachineBootTime();
  int64_t step_ns_ = 0;         // that pass with each Step
  bool slow_ = false;           // no receiver answers beacons
  std::optional<AuthKey> key_;  // that receivers show
};

TEST_F(GiverTest, AReceiverGetsTheStreamAndNoSessions) {
  StartGroup(1);
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Put("before", "v"), ReplyStatus::kOk);
  TestReceiver& receiver = WelcomedReceiver();
  EXPECT_EQ(receiver.welcome()->history, 77u);
  EXPECT_EQ(receiver.welcome()->epoch, 1u);
  ASSERT_EQ(peer.Put(kMovesAway, "v"), ReplyStatus::kOk);
  ASSERT_EQ(peer.Put(kStays, "v"), ReplyStatus::kOk) << "it gets all, whatever moves";
  SkipLeaseTime(kLeaseNs / 2);  // the receiver looks at its ring when a beacon comes
  ASSERT_TRUE(StepUntil([&] { return receiver.taken() == primary().end; }));
  EXPECT_THAT(receiver.keys(), testing::ElementsAre(kMovesAway, kStays));
  EXPECT_EQ(receiver.sessions(), 0);
}

TEST_F(GiverTest, AReceiverWhoseKeyIsWithdrawnIsEnded) {
  constexpr char kOthers[] = "1 000102030405060708090a0b0c0d0e0f replica\n";
  constexpr char kReceivers[] = "2 101112131415161718191a1b1c1d1e1f replica\n";
  test_support::KeyFile file(std::string(kOthers) + kReceivers);
  auth_file_ = file.path();
  key_ = AuthFile::Open(file.path()).value().keys()[1];
  StartGroup(1);
  TestReceiver& receiver = WelcomedReceiver();
  file.Write(std::string(kOthers) + "# nobody moves anything any more\n");
  Pass(2 * kNsPerSecond);  // the server looks at its file once a second
  EXPECT_TRUE(StepUntil([&] { return receiver.broken(); }));
  ASSERT_TRUE(StepUntil([&] { return receiver.Close() && primary().receivers.empty(); }));
  EXPECT_EQ(shared().now().configuration.in_sync.size(), 2u) << "the backup has another key";
  key_ = AuthFile::Open(file.path()).value().keys()[0];
  WelcomedReceiver();
}

TEST_F(GiverTest, AReceiverCountsForNothing) {
  StartGroup(1);
  slow_ = true;
  WelcomedReceiver();
  SkipLeaseTime(3 * kLeaseNs);
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  EXPECT_EQ(peer.Put("key", "v"), ReplyStatus::kOk) << "the lease does not need its answers";
  EXPECT_GT(primary().lease_left_ns, 0);
  EXPECT_EQ(shared().now().configuration.in_sync.size(), 2u);
  ASSERT_EQ(primary().receivers.size(), 1u);
  EXPECT_EQ(primary().receivers[0].node, "other");
  EXPECT_EQ(primary().backups.size(), 1u);

  EXPECT_TRUE(StepUntil([&] { return receivers_[0]->Close(); }));
  EXPECT_TRUE(StepUntil([&] { return primary().receivers.empty(); }));
  EXPECT_EQ(peer.Put("key", "w"), ReplyStatus::kOk);
  EXPECT_EQ(primary().links_broken, 0u) << "no backup's link did";
  EXPECT_EQ(shared().now().configuration.in_sync.size(), 2u);
}

TEST_F(GiverTest, AReceiverThatCannotReadTheStreamOrTheMemoryIsRefused) {
  StartGroup(0);
  TestReceiver& other_stream = AddReceiver();
  other_stream.hello().stream_version_min = other_stream.hello().stream_version_max = 999;
  EXPECT_THAT(Refusal(other_stream), HasSubstr("speaks versions 999 to 999"));
  TestReceiver& old = AddReceiver();
  old.hello().layout_version = 0;
  EXPECT_THAT(Refusal(old), HasSubstr("knows layouts up to version 0"));
  TestReceiver& other_ring = AddReceiver(2 * shared().terms().ring_bytes);
  EXPECT_THAT(Refusal(other_ring), HasSubstr("another length"));
  EXPECT_TRUE(primary().receivers.empty());
}

TEST_F(GiverTest, AReceiverThatLeavesNoRoomIsDropped) {
  StartGroup(1);
  slow_ = true;
  TestReceiver& receiver = WelcomedReceiver();
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  step_ns_ = kNsPerMs / 10;
  const std::string value(3'500, 'v');
  const uint64_t rounds = shared().terms().ring_bytes / value.size() + 100;
  for (uint64_t i = 0; i < rounds; ++i) ASSERT_EQ(peer.Put("key", value), ReplyStatus::kOk) << i;
  EXPECT_TRUE(StepUntil([&] { return receiver.broken(); }));
  EXPECT_TRUE(StepUntil([&] { return primary().receivers.empty(); }));
  EXPECT_EQ(shared().now().configuration.in_sync.size(), 2u);
}

TEST_F(GiverTest, EndsWhatAMapHasClosedOnceTheLeasesOfOlderMapsAreOver) {
  StartGroup(1);
  TestReceiver& receiver = WelcomedReceiver();
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Put(kMovesAway, "v"), ReplyStatus::kOk);
  const uint64_t decided = primary().committed;
  EXPECT_GT(decided, 0u);
  Close(3);
  ASSERT_TRUE(StepUntil([&] { return peer.Put(kMovesAway, "w") == ReplyStatus::kElsewhere; }));
  EXPECT_EQ(peer.Put(kStays, "v"), ReplyStatus::kOk);
  SkipLeaseTime(kLeaseNs - 2 * kNsPerSecond);
  EXPECT_TRUE(receiver.ended().empty());
  SkipLeaseTime(3 * kNsPerSecond);
  ASSERT_TRUE(StepUntilEnded(receiver, 1));
  EXPECT_EQ(receiver.ended()[0].revision, 3u);
  EXPECT_EQ(receiver.ended()[0].epoch, 1u);
  EXPECT_GE(receiver.ended()[0].lsn, decided);
  EXPECT_LE(receiver.ended()[0].lsn, primary().committed);
  EXPECT_GE(receiver.ended()[0].version_next + 1, server().store().NextVersion());
  // One that comes later is told, too, and nobody is told twice.
  const TestReceiver& later = WelcomedReceiver();
  ASSERT_TRUE(StepUntilEnded(later, 1));
  SkipLeaseTime(kNsPerSecond);
  EXPECT_EQ(receiver.ended().size(), 1u);
  EXPECT_EQ(later.ended().size(), 1u);

  Close(5);
  SkipLeaseTime(kLeaseNs + kNsPerSecond);
  ASSERT_TRUE(StepUntilEnded(receiver, 2));
  EXPECT_EQ(receiver.ended()[1].revision, 5u);
}

TEST_F(GiverTest, EndsNothingWhileAWorkerMayDecideByAnOlderMap) {
  StartGroup(0);
  TestReceiver& receiver = WelcomedReceiver();
  Close(3);
  for (int i = 0; i < 100; ++i) {
    SkipLeaseTimeOfTheMemberAlone(kNsPerSecond);
    receiver.Poll();
  }
  EXPECT_TRUE(receiver.ended().empty());
  Step();
  SkipLeaseTime(kLeaseNs + kNsPerSecond);
  EXPECT_TRUE(StepUntilEnded(receiver, 1));
}

TEST_F(GiverTest, EndsNothingWhileItHasNoLease) {
  StartGroup(1);
  TestReceiver& receiver = WelcomedReceiver();
  FollowApart();
  for (int i = 0; i < 15; ++i) SkipLeaseTime(kNsPerSecond);
  ASSERT_EQ(primary().lease_left_ns, 0);
  Close(3);
  SkipLeaseTime(kLeaseNs + kNsPerSecond);
  EXPECT_TRUE(receiver.ended().empty());
}

TEST_F(GiverTest, AReceiverThatWillCloseMakesLeasesShort) {
  StartGroup(0);
  TestReceiver& receiver = WelcomedReceiver();
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  EXPECT_GT(LeaseMs(peer), 50u);
  MoveClosing closing = NewMoveClosing();
  closing.epoch = 1;
  receiver.Send(closing);
  ASSERT_TRUE(StepUntil([&] { return LeaseMs(peer) <= 50; }));
  EXPECT_GT(LeaseMs(peer), 0u);
  SkipLeaseTime(kNsPerSecond);
  EXPECT_LE(LeaseMs(peer), 50u);
  SkipLeaseTime(PartitionEnd::ShortForNs(kLeaseNs));
  EXPECT_GT(LeaseMs(peer), 50u) << "it has not closed";
}

TEST_F(GiverTest, ABackupDoesNotSpeakAsAReceiver) {
  StartGroup(0);
  TestReceiver& receiver = WelcomedReceiver();
  ReplicaReady ready = NewReplicaReady();
  ready.epoch = 1;
  receiver.Send(ready);
  EXPECT_TRUE(StepUntil([&] { return receiver.broken(); }));
  EXPECT_EQ(shared().now().configuration.in_sync.size(), 1u);
}

}  // namespace
}  // namespace gannet
