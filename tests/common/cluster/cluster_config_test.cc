#include "common/cluster/cluster_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/cluster/cluster_map.h"
#include "common/cluster/map_changes.h"

namespace gannet {
namespace {

using testing::HasSubstr;

constexpr char kGroup[] =
    R"({"history":"00000000000000a1","epoch":3,"primary":{"node":"n1","incarnation":"fedcba9876543210"},)"
    R"("in_sync":[{"node":"n1","incarnation":"fedcba9876543210"},)"
    R"({"node":"n3","incarnation":"00000000000000b3"}],"members":["n1","n2","n3"],)"
    R"("lease_ms":600,"min_copies":1,"ring_bytes":16777216})";
constexpr char kNewGroup[] =
    R"({"history":"00000000000000a1","epoch":0,"primary":null,"in_sync":[],"members":["n1"],)"
    R"("lease_ms":600,"min_copies":1,"ring_bytes":16777216})";
constexpr char kNode[] =
    R"({"incarnation":"00000000000000b1","address":"10.0.0.1:7471","applied":4096})";

GroupConfig ExampleGroup() {
  return {.history = 0xa1,
          .epoch = 3,
          .primary = {"n1", 0xfedcba9876543210},
          .in_sync = {{"n1", 0xfedcba9876543210}, {"n3", 0xb3}},
          .members = {"n1", "n2", "n3"}};
}

// Returns the text with one part of it replaced.
std::string With(const std::string& text, const std::string& part, const std::string& other) {
  EXPECT_THAT(text, HasSubstr(part));
  return absl::StrReplaceAll(text, {{part, other}});
}

TEST(ClusterConfigTest, AGroupIsThisText) {
  EXPECT_EQ(Encode(ExampleGroup()), kGroup);
  const auto group = DecodeGroupConfig(kGroup);
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(*group, ExampleGroup());
}

TEST(ClusterConfigTest, AGroupThatNobodyHasServedHasNoPrimary) {
  const GroupConfig expected = {.history = 0xa1, .members = {"n1"}};
  EXPECT_EQ(Encode(expected), kNewGroup);
  const auto group = DecodeGroupConfig(kNewGroup);
  ASSERT_TRUE(group.ok()) << group.status();
  EXPECT_EQ(*group, expected);
}

TEST(ClusterConfigTest, ANodeIsThisText) {
  const NodeInfo expected = {.incarnation = 0xb1, .address = "10.0.0.1:7471", .applied = 4096};
  EXPECT_EQ(Encode(expected), kNode);
  const auto node = DecodeNodeInfo(kNode);
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(*node, expected);
  EXPECT_EQ(BeginningOf(expected), R"({"incarnation":"00000000000000b1")");
}

TEST(ClusterConfigTest, AWishNamesANode) {
  const auto wish = DecodeGroupWish(R"({"handover":"n2"})");
  ASSERT_TRUE(wish.ok()) << wish.status();
  EXPECT_EQ(*wish, GroupWish{.handover = "n2"});
  EXPECT_EQ(Encode(*wish), R"({"handover":"n2"})");
  for (const char* bad : {"", "{}", R"({"handover":""})", R"({"handover":"n2","more":1})",
                          R"({"handover":2})", R"({"handover":"a b"})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeGroupWish(bad).status())) << bad;
  }
}

TEST(ClusterConfigTest, AMoveIsThisText) {
  const std::string text = R"({"format":1,"to":"g2","asked":"by me","stop":false})";
  const MoveInfo expected = {.to = "g2", .asked = "by me"};
  EXPECT_EQ(Encode(expected), text);
  const auto move = DecodeMoveInfo(text);
  ASSERT_TRUE(move.ok()) << move.status();
  EXPECT_EQ(*move, expected);
  const auto stopped = DecodeMoveInfo(With(text, "false", "true"));
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_TRUE(stopped->stop);

  EXPECT_TRUE(
      absl::IsUnimplemented(DecodeMoveInfo(With(text, R"("format":1)", R"("format":2)")).status()));
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("7"), text.substr(1),
        With(text, R"("format":1)", R"("format":0)"), With(text, R"("format":1,)", ""),
        With(text, R"("to":"g2",)", ""), With(text, R"("g2")", R"("")"),
        With(text, R"("g2")", R"("a/b")"), With(text, R"("g2")", "2"),
        With(text, "by me", R"(by\u001b)"), With(text, "by me", std::string(200, 'a')),
        With(text, R"("by me")", "null"), With(text, "false", "0"),
        With(text, R"(,"stop":false)", ""), With(text, "false", R"(false,"more":1)")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeMoveInfo(bad).status())) << bad;
  }
}

TEST(ClusterConfigTest, AVersionIsThisText) {
  const std::string text =
      R"({"format":1,"incarnation":"00000000000000b1","version":"0.2.0","moves":true,"stream":1})";
  const NodeVersion expected = {
      .incarnation = 0xb1, .version = "0.2.0", .moves = true, .stream = 1};
  EXPECT_EQ(Encode(expected), text);
  const auto version = DecodeNodeVersion(text);
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(*version, expected);

  EXPECT_TRUE(absl::IsUnimplemented(
      DecodeNodeVersion(With(text, R"("format":1)", R"("format":2)")).status()));
  for (const std::string& bad :
       {std::string(), With(text, R"("format":1,)", ""),
        With(text, "00000000000000b1", "0000000000000000"), With(text, "0.2.0", ""),
        With(text, "0.2.0", std::string(200, '1')), With(text, "true", "1"),
        With(text, R"(,"stream":1)", ""), With(text, "true", R"(true,"more":1)")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeNodeVersion(bad).status())) << bad;
  }
}

TEST(ClusterConfigTest, RailsAreThisText) {
  const std::string text =
      R"({"format":1,"incarnation":"00000000000000b1","rails":["10.0.0.1:7471","10.0.1.1:7471"]})";
  const NodeRails expected = {.incarnation = 0xb1, .rails = {"10.0.0.1:7471", "10.0.1.1:7471"}};
  EXPECT_EQ(Encode(expected), text);
  const auto rails = DecodeNodeRails(text);
  ASSERT_TRUE(rails.ok()) << rails.status();
  EXPECT_EQ(*rails, expected);

  EXPECT_TRUE(absl::IsUnimplemented(
      DecodeNodeRails(With(text, R"("format":1)", R"("format":2)")).status()));
  for (const std::string& bad :
       {std::string(), With(text, R"("format":1,)", ""),
        With(text, "00000000000000b1", "0000000000000000"), With(text, "10.0.0.1:7471", ""),
        With(text, "10.0.0.1", "10.0 .1"), With(text, R"(,"10.0.1.1:7471")", ""),
        With(text, R"("10.0.0.1:7471")", "7471"), With(text, "10.0.0.1", std::string(300, '1')),
        With(text, R"("10.0.1.1:7471")", R"("a:1","a:2","a:3","a:4","a:5","a:6","a:7","a:8")"),
        With(text, "1\"]", R"(1"],"more":1)")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeNodeRails(bad).status())) << bad;
  }
}

TEST(ClusterConfigTest, WhatIsOnADiskIsThisText) {
  const std::string text =
      R"({"format":1,"incarnation":"00000000000000b1","run":"00000000000000a1",)"
      R"("history":"0000000000000011","applied":4096,"always":true,"opened":3})";
  const NodeDisk expected = {.incarnation = 0xb1,
                             .run = 0xa1,
                             .history = 0x11,
                             .applied = 4096,
                             .always = true,
                             .opened = 3};
  EXPECT_EQ(Encode(expected), text);
  const auto disk = DecodeNodeDisk(text);
  ASSERT_TRUE(disk.ok()) << disk.status();
  EXPECT_EQ(*disk, expected);
  EXPECT_TRUE(
      absl::IsUnimplemented(DecodeNodeDisk(With(text, R"("format":1)", R"("format":2)")).status()));
  for (const std::string& bad :
       {std::string(), With(text, R"("format":1,)", ""),
        With(text, "00000000000000b1", "0000000000000000"),
        With(text, "00000000000000a1", "0000000000000000"),
        With(text, "0000000000000011", "0000000000000000"), With(text, "4096", "-1"),
        With(text, "true", "1"), With(text, R"(,"opened":3)", ""),
        With(text, "true", R"(true,"more":1)")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeNodeDisk(bad).status())) << bad;
  }
}

TEST(ClusterConfigTest, PartitionsAreTheGroupsPlaces) {
  const ClusterConfig expected = FillPartitions({"g1", "g2"});
  const std::string text = Encode(expected);
  EXPECT_THAT(text, testing::StartsWith(R"({"format":1,"groups":["g1","g2"],"partitions":[)"));
  const auto config = DecodeClusterConfig(text);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, expected);
}

TEST(ClusterConfigTest, SaysThatANewerFormatNeedsANewerVersion) {
  const std::string text = With(Encode(FillPartitions({"g"})), R"("format":1)", R"("format":3)");
  const auto config = DecodeClusterConfig(text);
  EXPECT_TRUE(absl::IsUnimplemented(config.status())) << config.status();
  EXPECT_THAT(config.status().message(), HasSubstr("Update it"));
}

TEST(ClusterConfigTest, RefusesWhatIsNoConfiguration) {
  const std::string text = Encode(FillPartitions({"g1", "g2"}));
  std::string longer = text;
  longer.insert(longer.rfind(']'), ",0");
  for (const std::string& bad :
       {std::string(), std::string("7"), std::string("{}"), text.substr(1), longer,
        With(text, R"("format":1)", R"("format":0)"),
        With(text, R"("format":1)", R"("format":"1")"), With(text, R"("format":1,)", ""),
        With(text, R"("format":1)", R"("format":1,"more":2)"), With(text, R"(["g1","g2"])", "[]"),
        With(text, R"(["g1","g2"])", R"(["g2","g1"])"),
        With(text, R"(["g1","g2"])", R"(["g1","g1"])"), With(text, R"(["g1","g2"])", R"(["g1"])"),
        With(text, R"(["g1","g2"])", R"(["g1","a/b"])"),
        With(text, R"(["g1","g2"])", R"(["g1",2])"),
        With(text, R"("partitions":[)", R"("partitions":[-1,)"),
        std::string(R"({"format":1,"groups":["g"],"partitions":[0]})")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeClusterConfig(bad).status())) << bad.substr(0, 80);
  }
}

// An older process refuses format 2, and must: it would serve what is not its group's any more.
TEST(ClusterConfigTest, AChangedMapHasAFormatOfItsOwn) {
  const std::vector<uint16_t> partitions = {5, 6};
  const ClusterConfig before = FillPartitions({"g"});
  const auto expected = ClosePartitions(before, "g", partitions);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const std::string text = Encode(*expected);
  EXPECT_THAT(text, testing::StartsWith(R"({"format":2,"groups":["g"],"partitions":[0,)"));
  EXPECT_THAT(text, HasSubstr(R"("revision":1,"changed":[0,0,0,0,0,1,1,0,)"));
  EXPECT_THAT(text, testing::EndsWith(R"("closed":[5,6],"lost":[1]})"));
  const auto config = DecodeClusterConfig(text);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, *expected);

  for (const std::string& bad :
       {With(text, R"("format":2)", R"("format":1)"), With(text, R"("revision":1,)", ""),
        With(text, R"("revision":1)", R"("revision":0)"),
        With(text, R"("changed":[0,0,)", R"("changed":[0,)"),
        With(text, R"("changed":[0,0,)", R"("changed":[0,2,)"),
        With(text, R"("changed":[0,0,)", R"("changed":[0,-1,)"), With(text, "[5,6]", "[6,5]"),
        With(text, "[5,6]", "[5,5]"), With(text, "[5,6]", "[5,1024]"), With(text, "[5,6]", "[4,5]"),
        With(text, R"("lost":[1])", R"("lost":[])"), With(text, R"("lost":[1])", R"("lost":[2])"),
        With(text, R"("lost":[1])", R"("lost":[0])")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeClusterConfig(bad).status())) << bad.substr(0, 80);
  }
}

TEST(ClusterConfigTest, RefusesWhatIsNoGroup) {
  const std::string text = kGroup;
  for (const std::string& bad :
       {std::string("[]"),
        With(text, R"("history":"00000000000000a1",)", ""),
        With(text, "00000000000000a1", "0000000000000000"),
        With(text, "00000000000000a1", "a1"),
        With(text, "00000000000000a1", "00000000000000A1"),
        With(text, "00000000000000a1", "0x000000000000a1"),
        With(text, R"("00000000000000a1")", "161"),
        With(text, R"("epoch":3)", R"("epoch":-3)"),
        With(text, R"("epoch":3)", R"("epoch":3.0)"),
        With(text, R"("epoch":3)", R"("epoch":0)"),
        With(text, R"("epoch":3)", R"("epoch":9007199254740993)"),
        With(text, R"("primary":{"node":"n1")", R"("primary":{"node":"n2")"),
        With(text, R"({"node":"n3")", R"({"node":"n4")"),
        With(text, R"({"node":"n3")", R"({"node":"n1")"),
        With(text, R"({"node":"n3",)", R"({"node":"n3","more":1,)"),
        With(text, "00000000000000b3", "0000000000000000"),
        With(text, R"(["n1","n2","n3"])", R"(["n1","n2","n3","n1"])"),
        With(text, R"(["n1","n2","n3"])", R"(["n1","n2","n3",""])"),
        With(text, R"(["n1","n2","n3"])", "7"),
        With(text, R"("lease_ms":600)", R"("lease_ms":199)"),
        With(text, R"("lease_ms":600)", R"("lease_ms":10001)"),
        With(text, R"("lease_ms":600)", R"("lease_ms":4294967896)"),
        With(text, R"("min_copies":1)", R"("min_copies":0)"),
        With(text, R"("min_copies":1)", R"("min_copies":4)"),
        With(text, "16777216", "16777217"),
        With(text, "16777216", "4096"),
        With(kNewGroup, R"("epoch":0)", R"("epoch":1)"),
        With(kNewGroup, R"("in_sync":[])",
             R"("in_sync":[{"node":"n1","incarnation":"00000000000000b1"}])")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeGroupConfig(bad).status())) << bad;
  }
  EXPECT_THAT(
      DecodeGroupConfig(With(text, R"("epoch":3)", R"("epoch":3,"later":1)")).status().message(),
      HasSubstr("group: a field that this version does not know: later"));
}

TEST(ClusterConfigTest, RefusesWhatIsNoNode) {
  const std::string text = kNode;
  for (const std::string& bad :
       {With(text, "00000000000000b1", "0000000000000000"), With(text, "10.0.0.1:7471", ""),
        With(text, "10.0.0.1:7471", "a b"), With(text, "10.0.0.1:7471", std::string(300, 'a')),
        With(text, "4096", "-1"), With(text, "4096", "9007199254740993"),
        With(text, "4096", R"("4096")")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeNodeInfo(bad).status())) << bad;
  }
}

}  // namespace
}  // namespace gannet
