#include "client/session/group_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/protocol/partition_map.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;

std::string MapOf(std::vector<PartitionMap::Group> groups) {
  return EncodePartitionMap(
      {.groups = std::move(groups), .partitions = std::vector<uint16_t>(kPartitions)});
}

class GroupMembersTest : public ::testing::Test {
 protected:
  GroupMembersTest() { members_.Restart(/*group=*/true, 0); }
  // Answers with a piece of `map` of at most `most` bytes, that begins at `from`.
  static void Answer(GroupMembers* members, std::string_view map, uint64_t from, size_t most) {
    ReplyView reply{};
    reply.header.opcode = static_cast<uint8_t>(Opcode::kMap);
    reply.value = map.substr(from, most);
    const uint64_t next = from + reply.value.size();
    reply.header.list.next = next < map.size() ? next : 0;
    members->OnReply(reply);
  }
  static std::optional<std::vector<std::string>> Learn(GroupMembers* members, std::string_view map,
                                                       std::string_view connected = "") {
    Answer(members, map, members->Ask(0), map.size());
    return members->Take(connected);
  }

  GroupMembers members_{""};
};

TEST_F(GroupMembersTest, TakesAMapInPieces) {
  const std::string map = MapOf({{"g1", {"h:1", "h:2"}}});
  int pieces = 0;
  for (; members_.AskDue(0); ++pieces) Answer(&members_, map, members_.Ask(0), 1000);
  EXPECT_EQ(pieces, 3);
  EXPECT_THAT(members_.Take("").value(), ElementsAre("h:1", "h:2"));
  EXPECT_EQ(members_.Take(""), std::nullopt) << "once";
}

TEST_F(GroupMembersTest, TakesNoMapThatChangedBetweenTwoPieces) {
  const std::string map = MapOf({{"g1", {"h:1", "h:2"}}});
  const std::string other = MapOf({{"g1", {"h:1", "h:3"}}});
  Answer(&members_, map, members_.Ask(0), 1500);
  Answer(&members_, other, members_.Ask(0), 1500);
  EXPECT_EQ(members_.Take(""), std::nullopt);
}

TEST_F(GroupMembersTest, FindsTheGroupByItsNameOrByAMember) {
  const std::string map = MapOf({{"g1", {"h:1", "h:2"}}, {"g2", {"h:3", "h:4"}}});
  EXPECT_EQ(Learn(&members_, map), std::nullopt);
  EXPECT_THAT(Learn(&members_, map, "h:4").value(), ElementsAre("h:3", "h:4"));
  GroupMembers named("g1");
  named.Restart(true, 0);
  EXPECT_THAT(Learn(&named, map).value(), ElementsAre("h:1", "h:2"));
}

TEST_F(GroupMembersTest, AsksAtOnceAndThenLessAndLessOften) {
  const std::string map = MapOf({{"g1", {"h:1"}}});
  std::vector<int64_t> asked_s;
  for (int64_t now_s = 0; now_s < 120; ++now_s) {
    if (!members_.AskDue(now_s * kNsPerSecond)) continue;
    asked_s.push_back(now_s);
    Answer(&members_, map, members_.Ask(now_s * kNsPerSecond), map.size());
  }
  EXPECT_THAT(asked_s, ElementsAre(0, 1, 3, 7, 15, 31, 63, 95));
}

TEST_F(GroupMembersTest, AsksNobodyWhoIsInNoGroupOrKnowsNoMaps) {
  members_.Restart(/*group=*/false, 0);
  EXPECT_FALSE(members_.AskDue(1'000 * kNsPerSecond));
  members_.Restart(/*group=*/true, 0);
  ReplyView reply{};
  reply.header.status = static_cast<uint8_t>(ReplyStatus::kUnimplemented);
  members_.Ask(0);
  members_.OnReply(reply);
  EXPECT_FALSE(members_.AskDue(1'000 * kNsPerSecond));
}

// What was asked over the last one is not answered any more.
TEST_F(GroupMembersTest, BeginsAnewWithAConnection) {
  const std::string map = MapOf({{"g1", {"h:1"}}});
  Answer(&members_, map, members_.Ask(0), 100);
  members_.Ask(0);
  members_.Restart(/*group=*/true, 5);
  ASSERT_TRUE(members_.AskDue(5));
  EXPECT_EQ(members_.Ask(5), 0u);
  Answer(&members_, map, 0, map.size());
  EXPECT_THAT(members_.Take("").value(), ElementsAre("h:1"));
}

}  // namespace
}  // namespace gannet
