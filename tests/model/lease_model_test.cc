#include "tests/model/lease_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::lease {
namespace {

TEST(LeaseModel, HoldsForAClient) { ExpectHolds("a client", LeaseModel({}, {})); }
TEST(LeaseModel, HoldsForTwoBackups) {
  ExpectHolds("two backups", LeaseModel({}, {.second_backup = true, .client = false}));
}
TEST(LeaseModel, HoldsForAJoiner) {
  ExpectHolds("a joiner", LeaseModel({}, {.joiner = true, .client = false}));
}
TEST(LeaseModel, TheClockOfAJoinerThatTakesOverIsNotBehind) {
  ExpectHolds("a joiner's clock", LeaseModel({}, {.joiner = true, .client = false, .clock = true}));
}

TEST(LeaseModel, HoldsForAHandOver) {
  ExpectHolds("a hand-over", LeaseModel({}, {.hand_over = true}));
}

// The bound on G is exact.
TEST(LeaseModel, GraceIsTheLeaseOfASlowClockByAFastOne) {
  EXPECT_EQ(LeaseRules{}.grace, LeaseModel::kGraceMin);
}

struct Variant {
  const char* name;
  LeaseRules rules;
  LeaseScenario scenario = {};
};

class WeakerLease : public testing::TestWithParam<Variant> {};

TEST_P(WeakerLease, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(variant.name, LeaseModel(variant.rules, variant.scenario));
}

constexpr LeaseScenario kTwo = {.second_backup = true, .client = false};
constexpr LeaseScenario kJoiner = {.joiner = true, .client = false};

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerLease,
    testing::Values(
        Variant{"lease counted from the answer", {.from_send = false}},
        Variant{"lease from fewer than all", {.counts_all = false}, kTwo},
        Variant{"joiner counted late", {.joiner_first = false}, kJoiner},
        Variant{"joiner added while the lease is over",
                {.adds_under_lease = false},
                {.joiner = true, .client = false, .clock = true}},
        Variant{"clock looked at before the completion", {.looks_after_poll = false}},
        Variant{"G as long as the lease", {.grace = LeaseModel::kLease}},
        Variant{"G too short by one step", {.grace = LeaseModel::kGraceMin - LeaseModel::kFast}},
        Variant{"client counts from the answer", {.client_from_ask = false}},
        Variant{
            "client does not deduct for the rates", {.client_deducts = false}, {.hand_over = true}},
        Variant{"hand-over without a wait", {.waits_to_hand_over = false}, {.hand_over = true}},
        Variant{"hand-over without short leases", {.grants_short = false}, {.hand_over = true}},
        Variant{"hand-over that does not wait until no longer lease is valid",
                {.waits_for_long = false},
                {.hand_over = true}},
        Variant{"hand-over, and commits after it",
                {.commits_before_naming = false},
                {.client = false, .hand_over = true}},
        Variant{"write replies not under the lease", {.replies_under_lease = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::lease
