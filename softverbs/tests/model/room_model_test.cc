#include "softverbs/tests/model/room_model.h"

#include <gtest/gtest.h>

#include "softverbs/tests/model/model_test.h"

namespace softverbs::model::room {
namespace {

constexpr RoomScenario kWrites{.applications = {{{.requests = 2}, {}}}};
constexpr RoomScenario kReads{.applications = {{{.requests = 2, .kind = Kind::kRead}, {}}}};

TEST(RoomModel, WritesLargerThanTheRingEnd) {
  ExpectHolds("WRITEs", RoomModel(RoomRules{}, kWrites));
}
TEST(RoomModel, ReadsLargerThanTheRingEnd) { ExpectHolds("READs", RoomModel(RoomRules{}, kReads)); }
TEST(RoomModel, WritesBothWaysEnd) {
  constexpr RoomScenario kBoth{.applications = {{{.requests = 1}, {.requests = 1}}}, .packets = 2};
  ExpectHolds("WRITEs both ways", RoomModel(RoomRules{}, kBoth));
}
TEST(RoomModel, WritesAgainstReadsEnd) {
  constexpr RoomScenario kAgainst{
      .applications = {{{.requests = 1}, {.requests = 1, .kind = Kind::kRead}}}, .packets = 2};
  ExpectHolds("WRITEs against READs", RoomModel(RoomRules{}, kAgainst));
}

struct Variant {
  const char* name;
  RoomRules rules;
  RoomScenario scenario = kWrites;
};

class WeakerRoom : public testing::TestWithParam<Variant> {};

TEST_P(WeakerRoom, HasACounterexample) {
  ExpectCounterexample(GetParam().name, RoomModel(GetParam().rules, GetParam().scenario));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerRoom,
    testing::Values(
        Variant{"rung for too little room and not asked again", {.asks_before_sleep = false}},
        Variant{"the same for READs", {.asks_before_sleep = false}, kReads},
        Variant{"asked before it is noted", {.noted_before_asking = false}},
        Variant{"no look after asking", {.looks_after_asking = false}},
        Variant{"a look before room is freed", {.frees_before_it_looks = false}},
        Variant{"no ring for room", {.rings_for_room = false}},
        Variant{"no look after a sleep was published", {.looks_after_publishing = false}},
        Variant{"no poll after arming", {.polls_after_arming = false}}),
    kVariantName);

}  // namespace
}  // namespace softverbs::model::room
