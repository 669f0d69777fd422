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
    testing::Values(Variant{"a miss by the time of the answer", {.bound_from_begin = false}},
                    Variant{"a miss by the client's own clock", {.bound_is_lower = false}},
                    Variant{"a hit without an upper bound", {.alive_by_upper = false}},
                    Variant{"the server decides by the time its Poll began",
                            {.server_looks_again = false}},
                    Variant{"a new primary's clock behind the old one's", {.clock_goes_on = false}},
                    Variant{"bounds of the old primary's clock", {.new_bounds = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::expiry
