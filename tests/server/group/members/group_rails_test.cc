// A group whose servers have two rails: each link takes one, and goes on over the other.

#include <gtest/gtest.h>

#include <string>

#include "softverbs/control.h"
#include "softverbs/tests/support/key_file.h"
#include "tests/server/group/members/group_fixture.h"
#include "tests/server/rpc/raw_peer.h"

namespace gannet {
namespace {

class GroupRailsTest : public GroupPutTest {
 protected:
  void SetUp() override {
    GroupPutTest::SetUp();
    const auto second = OpenDevice("softverbs1");
    ASSERT_TRUE(second.ok()) << second.status();
    second_ = *second;
    UseRails({*Resolve("127.0.1.1:0", 0)});
  }
  void TearDown() override {
    for (int device = 0; device < 2; ++device) softverbs_set_port(device, 1);
    GroupPutTest::TearDown();
  }

  bool Has(size_t i, const std::string& key) {
    return backup(i).store().Get(key, {}, now().server_time).status != ReplyStatus::kNotFound;
  }
  // Returns what the primary says of the link of this node.
  Primary::Seen::Backup LinkOf(const std::string& node) {
    for (const Primary::Seen::Backup& it : primary().backups) {
      if (it.node == node && it.linked) return it;
    }
    return {};
  }
  // Whether nobody left those in sync, or took over.
  bool IsWhole(size_t members) {
    const GroupConfiguration configuration = shared().now().configuration;
    return configuration.epoch == 1 && configuration.in_sync.size() == members &&
           primary().removed == 0;
  }

  Device second_;
};

TEST_F(GroupRailsTest, WhatComesByTheSecondRailIsReplicated) {
  StartGroup(1);
  RawPeer peer(this, second_, server().context().rails[1].address);
  ASSERT_TRUE(peer.Connect());
  EXPECT_EQ(peer.Put("key", "value"), ReplyStatus::kOk);
  EXPECT_TRUE(StepUntil(
      [&] { return backup(0).store().Get("key", {}, now().server_time).value_bytes == 5; }));
}

TEST_F(GroupRailsTest, TwoBackupsTakeTwoRails) {
  StartGroup(2);
  EXPECT_EQ(LinkOf("n2").rail, 0);
  EXPECT_EQ(LinkOf("n3").rail, 1);
}

TEST_F(GroupRailsTest, ALinkWhoseRailDiesGoesOnOverAnother) {
  StartGroup(2);
  RawPeer peer(this, TestDevice(), server().context().rails[0].address);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Put("before", "value"), ReplyStatus::kOk);
  ASSERT_EQ(softverbs_set_port(1, 0), 0);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(peer.Put("key" + std::to_string(i), "value"), ReplyStatus::kOk);
  }
  EXPECT_EQ(LinkOf("n3").rail, 0);
  EXPECT_TRUE(StepUntil([&] { return Has(1, "key19"); }));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(Has(1, "key" + std::to_string(i)));
  EXPECT_TRUE(IsWhole(3));
  EXPECT_EQ(primary().links_broken, 1u);
}

// The primary has welcomed the link that goes on, and its backup does not know that yet. If it left
// the link now, it would read nothing of the ring. So nothing is committed until it has answered.
TEST_F(GroupRailsTest, NothingIsCommittedBeforeTheBackupFollowsTheLinkThatGoesOn) {
  StartGroup(1);
  RawPeer peer(this, second_, server().context().rails[1].address);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Put("before", "value"), ReplyStatus::kOk);
  FollowApart();
  ASSERT_EQ(softverbs_set_port(0, 0), 0);
  SkipLeaseTimeOfTheMemberAlone(kLeaseNs * 2 / 5);  // the backup misses beacons
  ASSERT_TRUE(StepUntil([&] {
    if (LinkOf("n2").rail == 1) return true;
    backup(0).member()->Poll(lease_now());
    return false;
  }));
  const uint64_t committed = primary().committed;
  RequestHeader header = peer.Header(Opcode::kPut);
  header.key_bytes = 3;
  header.value_bytes = 5;
  ASSERT_TRUE(peer.Send(header, "key", "value"));
  ASSERT_TRUE(StepUntil([&] { return primary().end > committed; }));
  for (int i = 0; i < 1'000; ++i) Step();
  EXPECT_EQ(primary().committed, committed);
  FollowAgain();
  const auto reply = peer.Receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status(), ReplyStatus::kOk);
  EXPECT_TRUE(StepUntil([&] { return Has(0, "key"); }));
  EXPECT_TRUE(IsWhole(2));
}

TEST_F(GroupRailsTest, ABackupThatLeavesSilentlyKeepsItsLink) {
  shared().SetTerms([](GroupTerms* terms) { terms->min_copies = 2; });
  StartGroup(1);
  backup(0).member()->Leave();
  SkipLeaseTime(kLeaseNs / 2);
  EXPECT_EQ(primary().links_broken, 0u);
  EXPECT_EQ(LinkOf("n2").rail, 0);
}

// The primary accepts nothing meanwhile.
TEST_F(GroupRailsTest, ABackupThatConnectsSleepsBetweenItsTurns) {
  StartGroup(0);
  StartBackup(0);
  Member& member = *backup(0).member();
  const auto poll = [&](BootTime at) {
    backup(0).Poll(now());
    member.Poll(at);
    return member.next_at();
  };
  for (int i = 0; i < 100; ++i) poll(lease_now());
  skipped_ns_ += kLeaseNs / 2;
  for (int i = 0; i < 10; ++i) {
    const BootTime at = lease_now();
    EXPECT_GT(poll(at), at);
  }
}

// Nobody else is heard, so by its silence alone it would be removed much later.
TEST_F(GroupRailsTest, ABackupWhoseKeyIsWithdrawnWhileItsLinkIsBrokenIsRemoved) {
  test_support::KeyFile file("1 000102030405060708090a0b0c0d0e0f replica\n");
  auth_file_ = file.path();
  StartGroup(1);
  FollowApart();
  ASSERT_EQ(softverbs_set_port(0, 0), 0);
  ASSERT_TRUE(StepUntil([&] { return primary().links_broken == 1; }));
  file.Write("2 101112131415161718191a1b1c1d1e1f replica\n");
  Pass(2 * kNsPerSecond);  // the server looks at its file once a second
  EXPECT_TRUE(StepUntil([&] { return shared().now().configuration.in_sync.size() == 1; }));
}

// Each rail dies in turn, with records under way, and what the ring holds wraps around.
TEST_F(GroupRailsTest, ALinkGoesOnAsOftenAsARailDies) {
  StartGroup(1);
  const std::string value(3000, 'v');
  int puts = 0;
  for (int round = 0; round < 4; ++round) {
    const int rail = LinkOf("n2").rail;
    const int other = 1 - rail;
    RawPeer peer(this, other == 0 ? TestDevice() : second_,
                 server().context().rails[other].address);
    ASSERT_TRUE(peer.Connect());
    ASSERT_EQ(softverbs_set_port(rail, 0), 0);
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(peer.Put("key" + std::to_string(puts++), value), ReplyStatus::kOk);
    }
    EXPECT_EQ(LinkOf("n2").rail, other);
    ASSERT_EQ(softverbs_set_port(rail, 1), 0);
  }
  EXPECT_TRUE(StepUntil([&] { return Has(0, "key" + std::to_string(puts - 1)); }));
  for (int i = 0; i < puts; ++i) EXPECT_TRUE(Has(0, "key" + std::to_string(i)));
  EXPECT_TRUE(IsWhole(2));
}

// Its link and its walk go by the same rail, and both go on over the other one.
TEST_F(GroupRailsTest, AJoinerWhoseRailDiesInTheMiddleOfItsWalkGoesOn) {
  constexpr int kItems = 4'000;
  StartGroup(0);
  RawPeer peer(this, second_, server().context().rails[1].address);
  ASSERT_TRUE(peer.Connect());
  for (int i = 0; i < kItems; ++i) {
    ASSERT_EQ(peer.Put("key" + std::to_string(i), "value"), ReplyStatus::kOk);
  }
  StartBackup(0);
  const auto percent = [&] { return backup(0).member()->Look().joined_percent; };
  ASSERT_TRUE(StepUntil([&] { return percent() > 20; }));
  ASSERT_LT(percent(), 100);
  ASSERT_EQ(LinkOf("n2").rail, 0);
  ASSERT_EQ(softverbs_set_port(0, 0), 0);
  EXPECT_TRUE(StepUntil([&] { return shared().now().configuration.in_sync.size() == 2; }));
  EXPECT_EQ(LinkOf("n2").rail, 1);
  EXPECT_FALSE(backup(0).member()->ended());
  for (int i = 0; i < kItems; ++i) EXPECT_TRUE(Has(0, "key" + std::to_string(i))) << i;
}

}  // namespace
}  // namespace gannet
