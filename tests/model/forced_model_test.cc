#include "tests/model/forced_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::forced {
namespace {

TEST(ForcedModel, WhoIsForcedHasWhatWasAcknowledged) {
  ExpectHolds("forced", ForcedModel(ForcedRules{}));
}

struct Variant {
  const char* name;
  ForcedRules rules;
};

class WeakerForced : public testing::TestWithParam<Variant> {};

TEST_P(WeakerForced, HasACounterexample) {
  ExpectCounterexample(GetParam().name, ForcedModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerForced,
    testing::Values(Variant{"a backup says what it has applied", {.says_what_came = false}},
                    Variant{"a backup says once what it has", {.says_it_again = false}},
                    Variant{"who is out counts as any other", {.out_is_worse = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::forced
