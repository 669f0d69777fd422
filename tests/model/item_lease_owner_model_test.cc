#include "tests/model/item_lease_owner_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::item_lease_owner {
namespace {

constexpr OwnerScenario kRestart = {.begins = true};
constexpr OwnerScenario kLoses = {.begins = true, .loses = true};
constexpr OwnerScenario kClockAhead = {.begins = true, .clock_ahead = true};
constexpr OwnerScenario kForced = {.in_group = true, .begins = true};
constexpr OwnerScenario kTakeover = {.in_group = true, .takes_over = true};
constexpr OwnerScenario kMoves = {.in_group = true, .moves = true};

TEST(ItemLeaseOwnerModel, HoldsForRestarts) {
  ExpectHolds("restart", ItemLeaseOwnerModel({}, kRestart));
  ExpectHolds("restart, a write is lost", ItemLeaseOwnerModel({}, kLoses));
  ExpectHolds("restart, the clock is ahead", ItemLeaseOwnerModel({}, kClockAhead));
}

TEST(ItemLeaseOwnerModel, HoldsInAGroup) {
  ExpectHolds("forced", ItemLeaseOwnerModel({}, kForced));
  ExpectHolds("takeover", ItemLeaseOwnerModel({}, kTakeover));
  ExpectHolds("a partition moves away and back", ItemLeaseOwnerModel({}, kMoves));
  ExpectHolds("without a new generation", ItemLeaseOwnerModel({.grows_with_moves = false}, kMoves));
}

TEST(ItemLeaseOwnerModel, HoldsForAllTogether) {
  OwnerScenario all = {.in_group = true,
                       .begins = true,
                       .takes_over = true,
                       .moves = true,
                       .loses = true,
                       .generations_max = 1};
  ExpectHolds("all together", ItemLeaseOwnerModel({}, all));
  if (!Large()) return;
  all.generations_max = 2;
  ExpectHolds("all together, two generations", ItemLeaseOwnerModel({}, all));
  ExpectHolds("all together, two generations, none with a move",
              ItemLeaseOwnerModel({.grows_with_moves = false}, all));
}

// The first draft's rule 6: only writes wait. It is right where the next process has all that the
// last one had, and goes on by the same clock, which none can know.
TEST(ItemLeaseOwnerModel, AnswersNeedNotWaitWhereNothingIsLost) {
  ExpectHolds("only writes wait", ItemLeaseOwnerModel({.answers_wait = false}, kRestart));
}

struct Variant {
  const char* name;
  OwnerRules rules;
  OwnerScenario scenario;
};

class WeakerOwner : public testing::TestWithParam<Variant> {};

TEST_P(WeakerOwner, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(variant.name, ItemLeaseOwnerModel(variant.rules, variant.scenario));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerOwner,
    testing::Values(
        Variant{"no wait after a restart", {.wait = 0}, kRestart},
        Variant{"a wait that is shorter than L", {.wait = 1}, kRestart},
        Variant{"only writes wait and a write is lost", {.answers_wait = false}, kLoses},
        Variant{"only writes wait and the clock is ahead", {.answers_wait = false}, kClockAhead},
        Variant{"a forced primary does not wait", {.forced_waits = false}, kForced},
        Variant{"answers without the primarys lease", {.under_lease = false}, kTakeover},
        Variant{"kept over a restart", {.drops_with_session = false}, kRestart},
        Variant{"kept over a takeover", {.drops_with_session = false}, kTakeover},
        Variant{"under a lease for any map", {.lease_is_for_the_map = false}, kMoves},
        Variant{
            "given while an older lease is left", {.older_leases_are_waited_out = false}, kMoves},
        Variant{"kept over a change of the map", {.drops_with_map = false}, kMoves},
        Variant{"the client compares owners only", {.compares_changes = false}, kMoves}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::item_lease_owner
