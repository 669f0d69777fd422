// The primary of a group leases its most popular items (docs/item-leases.md). Nobody else does.

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "common/protocol/item_leases_reply.h"
#include "common/protocol/partition_map.h"
#include "server/memory/store/item_leases.h"
#include "server/rpc/dispatcher.h"
#include "tests/server/group/members/group_fixture.h"

namespace gannet {
namespace {

constexpr uint32_t kItemLeaseMs = 20;
constexpr uint64_t kReads = 1'000;  // make an item popular

class LeasedGroupTest : public GroupPutTest {
 protected:
  LeasedGroupTest() {
    set_options_ = [](Server::Options* options) {
      options->item_lease_ms = kItemLeaseMs;
      options->leased_items = 16;
    };
  }
  void TearDown() override {
    peer_.reset();
    GroupPutTest::TearDown();
  }
  void Start() {
    StartGroup(1);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_TRUE(peer_.emplace(this).Connect());
  }
  // Puts items, and waits until the backup has them.
  void PutItems(int count) {
    for (int i = 0; i < count; ++i) ASSERT_EQ(peer_->Put(Key(i), value_), ReplyStatus::kOk);
    ASSERT_TRUE(StepUntil([&] { return backup(0).member()->Look().applied == primary().end; }));
  }
  static uint64_t Leased(Server& server) { return server.store().leases()->counts().leased; }
  // Tells a server that clients READ an item often, and gives it the time to lease it.
  void MakePopular(Server& server, const std::string& key) {
    const ReadOutcome item = server.store().Get(key, {}, now().server_time);
    ASSERT_NE(item.slot, 0u);
    server.store().leases()->popular().Note(Slot(item.slot).offset(), item.version, kReads);
    Pass(kNsPerSecond);
    // A whole lease is left from here on.
    Advance(kItemLeaseMs * kNsPerMs);
    Step();
  }
  ReplyHeader Write(Opcode opcode, const std::string& key, const std::string& value,
                    uint8_t flags = 0) {
    RequestHeader header = peer_->Header(opcode, flags);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = static_cast<uint32_t>(value.size());
    return peer_->Call(header, key, value).value().header;
  }

  std::optional<RawPeer> peer_;
};

TEST_F(LeasedGroupTest, ThePrimaryLeasesAndItsBackupsDoNot) {
  Start();
  PutItems(1);
  EXPECT_NE(peer_->grant().features & kGrantItemLeases, 0);
  MakePopular(server(), Key(0));
  EXPECT_EQ(Leased(server()), 1u);
  EXPECT_TRUE(server().HasLeases(now().server_time)) << "it is renewed";
  MakePopular(backup(0), Key(0));
  EXPECT_EQ(Leased(backup(0)), 0u);
}

// An update in a lane looks at the mark, as any other write does.
TEST_F(LeasedGroupTest, EachWriteOfALeasedItemIsPutOff) {
  Start();
  const std::string of_another_length = value_ + value_;
  const std::pair<Opcode, std::string> writes[] = {
      {Opcode::kPut, value_}, {Opcode::kPut, of_another_length}, {Opcode::kDelete, ""}};
  const int other = std::size(writes);
  PutItems(other + 1);
  for (int i = 0; i < other; ++i) {
    const auto& [opcode, value] = writes[i];
    MakePopular(server(), Key(i));
    ASSERT_TRUE(server().store().leases()->IsMarked(server().store().HashOf(Key(i))));
    const uint64_t leased = Leased(server());
    const uint64_t recorded = primary().end;
    const ReplyHeader put_off = Write(opcode, Key(i), value);
    EXPECT_EQ(put_off.status, static_cast<uint8_t>(ReplyStatus::kTryAgain));
    EXPECT_LE(put_off.words[kPutOffMsWord], kItemLeaseMs);
    EXPECT_GT(put_off.words[kPutOffMsWord], 0u);
    EXPECT_EQ(primary().end, recorded) << "nothing is decided before";
    EXPECT_EQ(Leased(server()), leased - 1);
    EXPECT_EQ(peer_->Put(Key(other), value_), ReplyStatus::kOk) << "of another key";
    Advance(kItemLeaseMs * kNsPerMs);
    EXPECT_EQ(Write(opcode, Key(i), value, kSentAgain).status, 0);
  }
}

// What a group has of others' partitions is brought and deleted without a look at marks.
TEST_F(LeasedGroupTest, WhatTheGroupDoesNotServeIsNotLeased) {
  Start();
  PutItems(2);
  GroupPartitions partitions = {.revision = 1, .alone = false};
  partitions.served.set(PartitionOf(Key(0)));
  ASSERT_FALSE(partitions.served[PartitionOf(Key(1))]);
  shared().SetPartitions(partitions);
  ASSERT_TRUE(StepUntil([&] { return peer_->Put(Key(1), value_) == ReplyStatus::kElsewhere; }));
  MakePopular(server(), Key(1));
  EXPECT_EQ(Leased(server()), 0u);
  MakePopular(server(), Key(0));
  EXPECT_EQ(Leased(server()), 1u);
}

}  // namespace
}  // namespace gannet
