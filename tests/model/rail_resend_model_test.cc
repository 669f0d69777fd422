#include "tests/model/rail_resend_model.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/model/model_test.h"

namespace gannet::model::rail_resend {
namespace {

using Operations = std::array<RailResendModel::Operation, RailResendModel::kRequests>;
constexpr Operations kIncrements = {RailResendModel::kIncrement, RailResendModel::kIncrement};
constexpr Operations kSwapAndPut = {RailResendModel::kCompareSwap, RailResendModel::kPut};

TEST(RailResendModel, HoldsForIncrements) {
  ExpectHolds("increments", RailResendModel({}, kIncrements, {}));
}
TEST(RailResendModel, HoldsForASwapAndAPut) {
  ExpectHolds("a swap and a put", RailResendModel({}, kSwapAndPut, {}));
}
TEST(RailResendModel, HoldsWithThreeDeaths) {
  ExpectHolds("three deaths", RailResendModel({}, kSwapAndPut, {.deaths = 3}));
}
TEST(RailResendModel, HoldsIfRequestsAreGivenUp) {
  ExpectHolds("given up", RailResendModel({}, kIncrements, {.deaths = 2, .gives_up = 2}));
}
TEST(RailResendModel, HoldsIfRequestsAreToBeTriedAgain) {
  ExpectHolds("try again",
              RailResendModel({}, kIncrements, {.deaths = 2, .gives_up = 1, .try_agains = 1}));
}

struct Variant {
  const char* name;
  RailResendRules rules;
  Operations operations;
  RailResendModel::Times times = {};
};

class WeakerRailResend : public testing::TestWithParam<Variant> {};

TEST_P(WeakerRailResend, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(variant.name,
                       RailResendModel(variant.rules, variant.operations, variant.times));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerRailResend,
    testing::Values(
        Variant{"an increment without a number", {.numbers = false}, kIncrements},
        Variant{"a swap without a number", {.numbers = false}, kSwapAndPut},
        Variant{"a swap is compared again", {.remembers_answer = false}, kSwapAndPut},
        Variant{"in the order of arrival", {.in_order = false}, kIncrements},
        Variant{"a rail waits for another", {.sets_aside = false}, kIncrements},
        Variant{
            "the last copy is answered", {.keeps_each_copy = false}, kIncrements, {.deaths = 3}},
        Variant{"a number is given up in silence", {.tells = false}, kIncrements, {.gives_up = 1}},
        Variant{"a request that was given up is executed later",
                {.remembers_given_up = false},
                kIncrements,
                {.gives_up = 1}},
        Variant{"a request that is to be tried again is executed later",
                {.remembers_try_again = false},
                kIncrements,
                {.try_agains = 1}},
        Variant{"numbers of a connection", {.of_session = false}, kIncrements}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::rail_resend
