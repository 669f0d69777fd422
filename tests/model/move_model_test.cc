#include "tests/model/move_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::move {
namespace {

constexpr MoveScenario kGiverFails = {.breaks = 1, .fail_overs = {1, 0}};
constexpr MoveScenario kReceiverFails = {.requests = 1, .others = 1, .fail_overs = {0, 1}};
constexpr MoveScenario kBothFail = {.requests = 1, .breaks = 1, .fail_overs = {1, 1}};
constexpr MoveScenario kGivenUp = {.closes = 2, .aborts = 1};
constexpr MoveScenario kReader = {.requests = 1, .reads = 1};
constexpr MoveScenario kReaderTwice = {.requests = 1, .reads = 2};
constexpr MoveScenario kBack = {.requests = 1, .closes = 2, .reads = 1};
constexpr MoveScenario kDeleted = {.operations = {MoveScenario::kDelete, MoveScenario::kIncrement}};
constexpr MoveScenario kPipelined = {.pipelined = true, .aborts = 1, .breaks = 1};
constexpr MoveScenario kPipelinedFails = {.pipelined = true, .aborts = 1, .fail_overs = {1, 0}};
constexpr MoveScenario kPipelinedBack = {.pipelined = true, .closes = 2};

TEST(MoveModel, HoldsIfTheGiverFailsOver) { ExpectHolds("giver", MoveModel({}, kGiverFails)); }
TEST(MoveModel, HoldsIfTheReceiverFailsOver) {
  ExpectHolds("receiver", MoveModel({}, kReceiverFails));
}
TEST(MoveModel, HoldsIfBothFailOver) { ExpectHolds("both", MoveModel({}, kBothFail)); }
TEST(MoveModel, HoldsIfAMoveIsGivenUp) { ExpectHolds("given up", MoveModel({}, kGivenUp)); }
TEST(MoveModel, HoldsForAReader) { ExpectHolds("reader", MoveModel({}, kReader)); }
TEST(MoveModel, HoldsForAReaderWithAPlace) { ExpectHolds("place", MoveModel({}, kReaderTwice)); }
TEST(MoveModel, HoldsThereAndBack) { ExpectHolds("there and back", MoveModel({}, kBack)); }
TEST(MoveModel, HoldsForADeletedKey) { ExpectHolds("deleted", MoveModel({}, kDeleted)); }

TEST(MoveModel, HoldsForAPipeline) { ExpectHolds("pipeline", MoveModel({}, kPipelined)); }
TEST(MoveModel, HoldsForAPipelineIfTheGiverFailsOver) {
  ExpectHolds("pipeline, giver", MoveModel({}, kPipelinedFails));
}
TEST(MoveModel, HoldsForAPipelineThereAndBack) {
  ExpectHolds("pipeline, there and back", MoveModel({}, kPipelinedBack));
}

TEST(MoveModel, HoldsAtLargerSizes) {
  if (!Large()) GTEST_SKIP() << "takes a minute; set LARGE_MODELS=1";
  ExpectHolds("both, two requests",
              MoveModel({}, {.others = 1, .breaks = 1, .fail_overs = {1, 1}}));
  ExpectHolds("given up, both", MoveModel({}, {.requests = 1,
                                               .closes = 2,
                                               .aborts = 1,
                                               .others = 1,
                                               .breaks = 1,
                                               .fail_overs = {1, 1}}));
  ExpectHolds("there and back, fail-overs",
              MoveModel({}, {.requests = 1, .closes = 2, .reads = 2, .fail_overs = {1, 1}}));
  ExpectHolds("pipeline, both",
              MoveModel({}, {.pipelined = true, .aborts = 1, .breaks = 1, .fail_overs = {1, 1}}));
}

struct Variant {
  const char* name;
  MoveRules rules;
  MoveScenario scenario;
};

class WeakerMove : public testing::TestWithParam<Variant> {};

TEST_P(WeakerMove, HasACounterexample) {
  ExpectCounterexample(GetParam().name, MoveModel(GetParam().rules, GetParam().scenario));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerMove,
    testing::Values(
        Variant{"walk before the stream", {.streams_before_walk = false}, kGiverFails},
        Variant{"an earlier try is kept", {.begins_empty = false}, kGiverFails},
        Variant{"giver answers after it closed", {.giver_refuses = false}, kGiverFails},
        Variant{"a deposed giver ends", {.ends_under_lease = false}, kGiverFails},
        Variant{"end told before all is committed", {.committed_first = false}, kGiverFails},
        Variant{"an old close taken for the new one", {.names_close = false}, kGivenUp},
        Variant{"new giver serves by an old map", {.reads_map_at_takeover = false}, kGiverFails},
        Variant{"versions begin anew", {.counter_goes_along = false}, kDeleted},
        Variant{"owner before its copy is committed",
                {.receiver_commits_first = false},
                kReceiverFails},
        Variant{
            "owner before leases of the old map are over", {.waits_for_leases = false}, kReader},
        Variant{"leases for any map", {.leases_by_revision = false}, kReader},
        Variant{"map not compared", {.compares_map = false}, kGivenUp},
        Variant{"epoch not compared", {.compares_epoch = false}, kReceiverFails},
        Variant{"unknown result taken as won", {.waits_for_result = false}, kGivenUp},
        Variant{"not asked again after an unknown result", {.asks_again = false}, kGiverFails},
        Variant{"unknown result taken as lost", {.keeps_until_settled = false}, kReader},
        Variant{
            "receiver serves before it is the owner", {.receiver_waits_for_map = false}, kGivenUp},
        Variant{"sent again to the new owner at once", {.asks_giver_first = false}, kGiverFails},
        Variant{"refused before the answers are looked at",
                {.answers_before_refusals = false},
                kGiverFails},
        Variant{"client compares owners only", {.compares_changed = false}, kBack},
        Variant{"READ of an old map kept", {.drops_reads = false}, kReader},
        Variant{"place of an old map kept", {.drops_places = false}, kReaderTwice},
        Variant{"a refusal says nothing of what follows", {.refuses_behind = false}, kPipelined},
        Variant{"the change of the map compared instead",
                {.refuses_behind = false, .compares_numbers = true},
                kPipelined},
        Variant{"sent behind a write of an older map", {.holds_unsent = false}, kPipelined},
        Variant{"all that was refused sent again at once", {.holds_refused = false}, kPipelined},
        Variant{"sent again what was lost behind", {.holds_lost = false}, kPipelinedFails},
        Variant{"told behind a write that is not answered",
                {.first_says_told = false},
                kPipelinedFails}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::move
