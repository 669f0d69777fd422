#include "tests/model/lock_rail_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::lock_rail {
namespace {

TEST(LockRailModel, OneClientHasTheLockWhateverTheDeadRailDoes) {
  ExpectHolds("lock rail", LockRailModel({}));
}

struct Variant {
  const char* name;
  LockRailRules rules;
};

class WeakerLockRail : public testing::TestWithParam<Variant> {};

TEST_P(WeakerLockRail, HasACounterexample) {
  ExpectCounterexample(GetParam().name, LockRailModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerLockRail,
    testing::Values(Variant{"the server swaps through another device", {.one_device = false}},
                    Variant{"the words stay where they are", {.new_memory = false}},
                    Variant{"the old memory is free at once", {.keeps_old_memory = false}},
                    Variant{"no wait for leases", {.waits_for_leases = false}},
                    Variant{"a lease from the completion", {.lease_from_post = false}},
                    Variant{"fences begin anew", {.fences_grow = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::lock_rail
