// A primary of two rails. Its backup follows over the first one.

#include <gtest/gtest.h>

#include <string>

#include "tests/server/group/members/group_fixture.h"
#include "tests/server/rpc/raw_peer.h"

namespace gannet {
namespace {

class GroupRailsTest : public GroupPutTest {};

TEST_F(GroupRailsTest, WhatComesByTheSecondRailIsReplicated) {
  const auto second = OpenDevice("softverbs1");
  ASSERT_TRUE(second.ok()) << second.status();
  UseRails({*Resolve("127.0.1.1:0", 0)});
  StartGroup(1);
  RawPeer peer(this, *second, server().context().rails[1].address);
  ASSERT_TRUE(peer.Connect());
  EXPECT_EQ(peer.Put("key", "value"), ReplyStatus::kOk);
  EXPECT_TRUE(StepUntil(
      [&] { return backup(0).store().Get("key", {}, now().server_time).value_bytes == 5; }));
}

}  // namespace
}  // namespace gannet
