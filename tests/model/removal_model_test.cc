#include "tests/model/removal_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::removal {
namespace {

TEST(RemovalModel, APrimaryWithoutAPortLosesToItsBackups) {
  ExpectHolds("removal", RemovalModel(RemovalRules{}));
}

struct Variant {
  const char* name;
  RemovalRules rules;
};

class WeakerRemoval : public testing::TestWithParam<Variant> {};

TEST_P(WeakerRemoval, HasACounterexample) {
  ExpectCounterexample(GetParam().name, RemovalModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(Rules, WeakerRemoval,
                         testing::Values(Variant{"early removal by a primary that hears nobody",
                                                 {.waits_if_it_hears_nobody = false}},
                                         Variant{"a wait for G only", {.waits_long = false}},
                                         Variant{"beacons go on while nobody answers",
                                                 {.falls_silent = false}}),
                         kVariantName);

}  // namespace
}  // namespace gannet::model::removal
