// Keys whose partition another group has.

#include <gtest/gtest.h>

#include <string>

#include "common/protocol/partition_map.h"
#include "server/replica/group_standing.h"
#include "tests/server/rpc/kept_stream.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

constexpr uint64_t kHistory = 0x1112131415161718;
constexpr int64_t kLeaseNow = 5'000'000'000'000;
const std::string kHere = "here";
const std::string kGone = "gone";

// All partitions but that of kGone.
GroupPartitions WithoutGone(uint64_t revision) {
  GroupPartitions partitions = {.revision = revision, .lost = revision, .alone = false};
  partitions.served.set();
  partitions.served[PartitionOf(kGone)] = false;
  return partitions;
}

// A primary whose records are committed at once.
class ElsewhereTest : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NE(PartitionOf(kHere), PartitionOf(kGone));
    standing_.SetServes(true);
    StartServer([this](Server::Options* options) {
      options->standing = &standing_;
      options->streams_sessions = true;
      options->lease_now_ns = [] { return kLeaseNow; };
    });
    server().AddConsumer(&stream_, ChangeStream::Need::kRequired);
  }
  void TearDown() override { StopServer(); }
  void Step() override {
    ServerTest::Step();
    stream_.Commit(stream_.log().size());
  }

  GroupStanding standing_{kHistory};
  KeptStream stream_;
};

TEST_F(ElsewhereTest, EverythingIsHereUntilAMapSaysOtherwise) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  EXPECT_EQ(peer.Put(kGone, "value"), ReplyStatus::kOk);
  EXPECT_EQ(peer.Get(kGone), "value");
}

TEST_F(ElsewhereTest, RefusesAllThatNamesAKeyOfAnotherGroup) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  standing_.SetPartitions(WithoutGone(7));
  for (const Opcode opcode : {Opcode::kGet, Opcode::kPut, Opcode::kDelete, Opcode::kAppend,
                              Opcode::kTouch, Opcode::kLock}) {
    SCOPED_TRACE(static_cast<int>(opcode));
    RequestHeader header = peer.Header(opcode);
    header.key_bytes = static_cast<uint16_t>(kGone.size());
    if (opcode == Opcode::kLock) header.lock.lock_word = 1;
    const auto reply = peer.Call(header, kGone);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->status(), ReplyStatus::kElsewhere);
    EXPECT_EQ(reply->header.words[0], 7u) << "the map's revision";
  }
  EXPECT_EQ(peer.Put(kHere, "value"), ReplyStatus::kOk);
  EXPECT_EQ(peer.Get(kHere), "value");
  EXPECT_EQ(stats().items, 1u);
}

TEST_F(ElsewhereTest, AnAnswerThatIsRememberedComesFirst) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  RequestHeader first = peer.Header(Opcode::kPut);
  first.key_bytes = static_cast<uint16_t>(kGone.size());
  const auto put = peer.Call(first, kGone);
  ASSERT_TRUE(put.has_value());
  ASSERT_EQ(put->status(), ReplyStatus::kOk);

  standing_.SetPartitions(WithoutGone(1));
  const auto again = peer.Call(first, kGone);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->status(), ReplyStatus::kOk) << "it was executed here";
  EXPECT_EQ(again->header.write.version, put->header.write.version);
}

TEST_F(ElsewhereTest, WhatWasRefusedIsExecutedIfThePartitionIsBack) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  standing_.SetPartitions(WithoutGone(1));
  RequestHeader header = peer.Header(Opcode::kPut);
  header.key_bytes = static_cast<uint16_t>(kGone.size());
  auto reply = peer.Call(header, kGone);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status(), ReplyStatus::kElsewhere);

  GroupPartitions back = WithoutGone(2);
  back.served.set();
  standing_.SetPartitions(back);
  reply = peer.Call(header, kGone);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status(), ReplyStatus::kOk);
}

TEST_F(ElsewhereTest, ALockIsReleasedWhereItWasTaken) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  standing_.SetPartitions(WithoutGone(1));
  RequestHeader header = peer.Header(Opcode::kUnlock, kForce);
  header.key_bytes = static_cast<uint16_t>(kGone.size());
  const auto reply = peer.Call(header, kGone);
  ASSERT_TRUE(reply.has_value());
  EXPECT_NE(reply->status(), ReplyStatus::kElsewhere);
}

TEST_F(ElsewhereTest, ALeaseSaysForWhichMapsItHolds) {
  standing_.SetLeaseEnd(kLeaseNow + 500 * kNsPerMs);
  RawPeer before(this);
  ASSERT_TRUE(before.Connect());
  EXPECT_EQ(before.grant().primary_lease_ms, 500u);
  const RequestHeader heartbeat{};
  auto reply = before.Call(heartbeat);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->header.clock.leases_from, 0u);

  standing_.SetPartitions(WithoutGone(7));
  reply = before.Call(heartbeat);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->header.primary_lease_ms, 500u);
  EXPECT_EQ(reply->header.clock.leases_from, 7u);
  RawPeer after(this);
  ASSERT_TRUE(after.Connect());
  EXPECT_EQ(after.grant().primary_lease_ms, 0u) << "a grant cannot say for which maps";
}

}  // namespace
}  // namespace gannet
