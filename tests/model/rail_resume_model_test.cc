#include "tests/model/rail_resume_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::rail_resume {
namespace {

TEST(RailResumeModel, OneRailAtATimeKeepsTheOrder) {
  ExpectHolds("one rail at a time", RailResumeModel({}));
}

struct Variant {
  const char* name;
  RailResumeRules rules;
};

class WeakerRailResume : public testing::TestWithParam<Variant> {};

TEST_P(WeakerRailResume, HasACounterexample) {
  ExpectCounterexample(GetParam().name, RailResumeModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(Rules, WeakerRailResume,
                         testing::Values(Variant{"without numbers", {.numbers = false}},
                                         Variant{"numbers of a connection", {.of_session = false}},
                                         Variant{"granted before the old one is closed",
                                                 {.closes_old = false}},
                                         Variant{"what was received stays", {.drops_old = false}},
                                         Variant{"something new first", {.sends_in_order = false}}),
                         kVariantName);

}  // namespace
}  // namespace gannet::model::rail_resume
