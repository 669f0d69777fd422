#include "tests/model/moved_expiry_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::moved_expiry {
namespace {

TEST(MovedExpiryModel, AnItemThatMovesExpiresAsItWouldHaveBefore) {
  ExpectHolds("moved expiry", MovedExpiryModel(MovedExpiryRules{}));
}

struct Variant {
  const char* name;
  MovedExpiryRules rules;
};

class WeakerMovedExpiry : public testing::TestWithParam<Variant> {};

TEST_P(WeakerMovedExpiry, HasACounterexample) {
  ExpectCounterexample(GetParam().name, MovedExpiryModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerMovedExpiry,
    testing::Values(Variant{"the giver's expiry", {.translates = false}},
                    Variant{"the own clock when the welcome comes", {.asks_first = false}},
                    Variant{"the own clock before the last hello", {.reads_once = false}},
                    Variant{"a difference that is not rounded down", {.rounds_down = false}},
                    Variant{"the owner at once", {.waits = false}},
                    Variant{"the owner by a beacon from before the end", {.behind_the_end = false}},
                    Variant{"the clock of the giver's former primary", {.begins_anew = false}},
                    Variant{"a clock of the giver's that goes back", {.goes_on = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::moved_expiry
