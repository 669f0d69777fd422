#include "tests/model/item_lease_clock_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::item_lease_clock {
namespace {

TEST(ItemLeaseClockModel, HoldsForClocksOfAnyRates) {
  ExpectHolds("clocks", ItemLeaseClockModel(ClockRules{}));
}

// No share of it is to be added for the rates of clocks: the client's bound goes at least as fast
// as any clock, that of the next server included.
TEST(ItemLeaseClockModel, TheWaitIsALease) {
  EXPECT_EQ(ClockRules{}.wait, ItemLeaseClockModel::kLease);
}

struct Variant {
  const char* name;
  ClockRules rules;
};

class WeakerClock : public testing::TestWithParam<Variant> {};

TEST_P(WeakerClock, HasACounterexample) {
  ExpectCounterexample(GetParam().name, ItemLeaseClockModel(GetParam().rules));
}

constexpr int kStep = ItemLeaseClockModel::kFast * ItemLeaseClockModel::kThirds;

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerClock,
    testing::Values(Variant{"a wait too short by one step",
                            {.wait = ItemLeaseClockModel::kLease - kStep}},
                    Variant{"the bound does not allow for rates", {.bound_allows_rates = false}},
                    Variant{"the bound counts from the answer", {.bound_from_ask = false}},
                    Variant{"the servers clock jumps ahead", {.never_jumps = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::item_lease_clock
