#include "tools/kvcli/cluster_moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/cluster_map.h"
#include "common/cluster/map_changes.h"
#include "common/protocol/partition_map.h"

namespace gannet::kvcli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

GroupConfig Served(const std::string& node, uint64_t incarnation) {
  return {.history = 0x11,
          .epoch = 1,
          .primary = {node, incarnation},
          .in_sync = {{node, incarnation}},
          .members = {node}};
}
// g1 and g2 have half of the partitions each; g3 has none. All are served.
ClusterState StateWithMoves() {
  ClusterConfig map = FillPartitions({"g1", "g2"});
  for (uint16_t p = 0; p < kPartitions; ++p) map.partitions[p] = p % 2;
  const auto more = AddGroup(map, "g3");
  EXPECT_TRUE(more.ok());
  ClusterState state = {.name = "c", .map = *more, .map_revision = 7, .groups = {}, .nodes = {}};
  uint64_t incarnation = 0xb0;
  for (const char* name : {"g1", "g2", "g3"}) {
    const std::string node = std::string("n") + name;
    state.groups[name] = {Served(node, ++incarnation), 8};
    state.nodes[node] = {.incarnation = incarnation, .address = "h:1"};
    state.versions[node] = {.incarnation = incarnation, .version = "0.2.0", .moves = true};
  }
  return state;
}
ClusterState::Move MoveTo(const std::string& group, bool stop = false) {
  return {.info = {.to = group, .asked = "by me", .stop = stop}, .mod_revision = 9};
}
std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }
const std::vector<uint64_t> kSame(kPartitions, 100);

TEST(ClusterMovesTest, AGroupIsAddedWithoutPartitions) {
  const GroupConfig group = {.history = 0x12, .members = {"m1", "m2"}};
  const auto added = WithGroup(StateWithMoves(), "g0", group);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_THAT(added->map.groups, ElementsAre("g0", "g1", "g2", "g3"));
  EXPECT_EQ(std::ranges::count(added->map.partitions, 0), 0);
  EXPECT_EQ(added->group, group);

  const absl::Status twice = WithGroup(StateWithMoves(), "g1", group).status();
  EXPECT_TRUE(absl::IsAlreadyExists(twice));
  EXPECT_THAT(MessageOf(twice), HasSubstr("kvcli cluster add"));
  const absl::Status member =
      WithGroup(StateWithMoves(), "g4", {.history = 1, .members = {"ng1"}}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(member));
  EXPECT_THAT(MessageOf(member), HasSubstr("ng1 is a member of group g1"));
  EXPECT_TRUE(absl::IsInvalidArgument(WithGroup(StateWithMoves(), "g 4", group).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      WithGroup(StateWithMoves(), "g4", {.history = 1, .members = {"a b"}}).status()));
}

TEST(ClusterMovesTest, AGroupGoesOnceItHasNothing) {
  const auto removed = WithoutGroup(StateWithMoves(), "g3");
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_THAT(removed->groups, ElementsAre("g1", "g2"));
  EXPECT_TRUE(absl::IsNotFound(WithoutGroup(StateWithMoves(), "g9").status()));
  EXPECT_THAT(MessageOf(WithoutGroup(StateWithMoves(), "g1").status()),
              AllOf(HasSubstr("512 partitions"), HasSubstr("kvcli cluster drain g1")));
  ClusterState moving = StateWithMoves();
  moving.moves[0] = MoveTo("g3");
  EXPECT_THAT(MessageOf(WithoutGroup(moving, "g3").status()), HasSubstr("--stop"));
}

TEST(ClusterMovesTest, FindsMembersThatKnowOfNoMoves) {
  EXPECT_TRUE(KnowMoves(StateWithMoves()).ok());
  ClusterState state = StateWithMoves();
  state.groups["g2"].config.members.push_back("later");
  EXPECT_TRUE(KnowMoves(state).ok()) << "who has not run will be of this version";
  state.versions.erase("ng2");
  EXPECT_THAT(MessageOf(KnowMoves(state)),
              AllOf(HasSubstr("ng2 of group g2 runs Gannet 0.1.0"), HasSubstr("Upgrade it"),
                    HasSubstr("kvcli cluster remove g2 ng2")));
  state = StateWithMoves();
  state.nodes["ng2"].incarnation = 0xff;  // was of this version, and was then downgraded
  EXPECT_THAT(MessageOf(KnowMoves(state)), HasSubstr("runs Gannet 0.1.0"));
  state = StateWithMoves();
  state.versions["ng2"].moves = false;
  EXPECT_THAT(MessageOf(KnowMoves(state)), HasSubstr("runs Gannet 0.2.0"));
  const std::vector<uint16_t> partitions = {0};
  EXPECT_TRUE(absl::IsFailedPrecondition(PlanOfMove(state, partitions, "g3").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(PlanOfBalance(state, kSame).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(PlanOfDrain(state, "g1", kSame).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      WithGroup(state, "g4", {.history = 1, .members = {"m"}}).status()));
}

TEST(ClusterMovesTest, MovesWhatIsNamedAndNotThereYet) {
  const std::vector<uint16_t> partitions = {0, 1, 2};
  ClusterState state = StateWithMoves();
  state.moves[2] = MoveTo("g2");
  const auto plan = PlanOfMove(state, partitions, "g2");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(*plan, ElementsAre(PartitionMove{.partition = 0, .from = 0, .to = 1}));

  EXPECT_THAT(MessageOf(PlanOfMove(state, partitions, "g3").status()),
              AllOf(HasSubstr("partition 2 moves to g2 already"), HasSubstr("--stop")));
  state.moves[2] = MoveTo("g2", /*stop=*/true);
  EXPECT_TRUE(absl::IsFailedPrecondition(PlanOfMove(state, partitions, "g2").status()));
  EXPECT_TRUE(absl::IsNotFound(PlanOfMove(state, partitions, "g9").status()));
  state = StateWithMoves();
  state.groups["g3"].config = {.history = 0x12, .members = {"m1"}};
  EXPECT_THAT(MessageOf(PlanOfMove(state, partitions, "g3").status()),
              HasSubstr("start kvserver --name=m1"));
}

TEST(ClusterMovesTest, BalancesWhatWillBeOnceMovesHaveEnded) {
  ClusterState state = StateWithMoves();
  const auto plan = PlanOfBalance(state, kSame);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(plan->size(), 300u);
  for (const PartitionMove& move : *plan) {
    EXPECT_EQ(move.to, 2);
    state.moves[move.partition] = MoveTo("g3");
  }
  EXPECT_THAT(*PlanOfBalance(state, kSame), IsEmpty());
  // Nobody stops in the middle of what it has asked for.
  state.moves.erase(plan->front().partition);
  state.map = MapAfterMoves(state);
  EXPECT_EQ(std::ranges::count(state.map.partitions, 2),
            static_cast<std::ptrdiff_t>(plan->size()) - 1);
}

TEST(ClusterMovesTest, DrainsTheRestOfAGroup) {
  ClusterState state = StateWithMoves();
  state.moves[0] = MoveTo("g2");
  const auto plan = PlanOfDrain(state, "g1", kSame);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->size(), 511u);
  for (const PartitionMove& move : *plan) ASSERT_EQ(move.from, 0);
  EXPECT_THAT(MessageOf(PlanOfDrain(state, "g2", kSame).status()),
              HasSubstr("moves to g2 already"));
  EXPECT_TRUE(absl::IsNotFound(PlanOfDrain(state, "g9", kSame).status()));
}

TEST(ClusterMovesTest, ShowsAPlanAndWhatIsThen) {
  const std::vector<PartitionMove> plan = {{.partition = 0, .from = 0, .to = 2},
                                           {.partition = 2, .from = 0, .to = 2}};
  EXPECT_EQ(PlanText(StateWithMoves(), plan, kSame),
            "plan: 2 partitions, 200 bytes to move\n"
            "  g1 -> g3  2 partitions, 200 bytes\n"
            "then:\n"
            "  g1  510 partitions, 49.8 KiB\n"
            "  g2  512 partitions, 50.0 KiB\n"
            "  g3  2 partitions, 200 bytes\n");
  EXPECT_THAT(PlanText(StateWithMoves(), plan, {}), Not(HasSubstr("bytes")));
  const Json json = PlanJson(StateWithMoves(), plan, kSame);
  EXPECT_EQ(json["moves"].size(), 2u);
  EXPECT_EQ(json["moves"][1],
            Json({{"partition", 2}, {"from", "g1"}, {"to", "g3"}, {"bytes", 100}}));
  EXPECT_EQ(json["after"][2], Json({{"group", "g3"}, {"partitions", 2}, {"bytes", 200}}));
}

TEST(ClusterMovesTest, ShowsWhatMoves) {
  ClusterState state = StateWithMoves();
  EXPECT_EQ(MovesText(state), "no partition moves\n");
  const std::vector<uint16_t> closed = {2};
  state.map = *ClosePartitions(state.map, "g1", closed);
  state.moves = {{0, MoveTo("g3")}, {2, MoveTo("g3", true)}, {1, MoveTo("g3")}};
  EXPECT_EQ(MovesText(state),
            "g1 -> g3  2 to move, 1 closed for it, 1 are given up; asked by me\n"
            "g2 -> g3  1 to move, 0 closed for it; asked by me\n");
  EXPECT_EQ(MovesJson(state)[2], Json({{"partition", 2},
                                       {"from", "g1"},
                                       {"to", "g3"},
                                       {"closed", true},
                                       {"stop", true},
                                       {"asked", "by me"}}));
}

TEST(ClusterMovesTest, ProgressSaysHowLongItTakes) {
  ClusterState state = StateWithMoves();
  state.moves = {{0, MoveTo("g3")}, {2, MoveTo("g3")}, {4, MoveTo("g3")}, {6, MoveTo("g3")}};
  std::vector<uint64_t> bytes(kPartitions, 1 << 20);
  PlanProgress progress({{0, "g3"}, {2, "g3"}, {4, "g3"}, {6, "g3"}}, bytes, 1000);
  progress.Take(state, 1000);
  EXPECT_FALSE(progress.done());
  EXPECT_EQ(progress.Text(1000), "0 of 4 partitions have moved, 0 bytes of 4.0 MiB");
  progress.Take(state, 5000);
  EXPECT_EQ(progress.StillMs(5000), 4000);
  state.moves.erase(0);
  state.map.partitions[0] = 2;
  progress.Take(state, 11'000);
  EXPECT_EQ(progress.StillMs(11'000), 0);
  EXPECT_EQ(progress.Text(11'000),
            "1 of 4 partitions have moved, 1.0 MiB of 4.0 MiB, about 31 s left");
  state.moves.clear();
  state.map.partitions[2] = state.map.partitions[4] = 2;
  progress.Take(state, 12'000);
  EXPECT_TRUE(progress.done());
  EXPECT_THAT(progress.given_up(), ElementsAre(6));
  EXPECT_EQ(progress.moved(), 3u);
}

}  // namespace
}  // namespace gannet::kvcli
