#include "tests/model/expiry_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::expiry {
namespace {

TEST(ExpiryModel, ExpiryIsLikeADeleteWhenTheClockReachesIt) {
  ExpectHolds("expiry", ExpiryModel(ExpiryRules{}));
}

struct Variant {
  const char* name;
  ExpiryRules rules;
};

class WeakerExpiry : public testing::TestWithParam<Variant> {};

TEST_P(WeakerExpiry, HasACounterexample) {
  ExpectCounterexample(GetParam().name, ExpiryModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerExpiry,
    testing::Values(
        Variant{"a miss by the time of the answer", {.bound_from_begin = false}},
        Variant{"a miss by the client's own clock", {.bound_is_lower = false}},
        Variant{"a hit without an upper bound", {.alive_by_upper = false}},
        Variant{"the server decides by the time its Poll began", {.server_looks_again = false}},
        Variant{"a new primary's clock behind the old one's", {.clock_goes_on = false}},
        Variant{"bounds of the old primary's clock", {.new_bounds = false}},
        Variant{"any beacon's clock is the last", {.last_is_told = false, .told_again = false}},
        Variant{"the last of the clock told before the primary stops",
                {.stops_first = false, .told_again = false}},
        Variant{"the last of the clock of a hand-over that failed", {.told_again = false}},
        Variant{"a clock that is ahead is set back", {.slewed = false}},
        Variant{"a clock that is slewed faster than clients allow for", {.slewed_slowly = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::expiry
