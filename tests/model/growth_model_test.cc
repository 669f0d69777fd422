#include "tests/model/growth_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::growth {
namespace {

constexpr uint8_t kOperations = kSanitized ? 2 : 3;

TEST(GrowthModel, HoldsWithKPresent) {
  ExpectHolds("K present", GrowthModel({}, /*k_present=*/true, kOperations));
}
TEST(GrowthModel, HoldsWithKAbsent) {
  ExpectHolds("K absent", GrowthModel({}, /*k_present=*/false, kOperations));
}

// Every rule is needed: without it there is a counterexample.
struct Variant {
  const char* name;
  GrowthRules rules;
};

class WeakerGrowth : public testing::TestWithParam<Variant> {};

TEST_P(WeakerGrowth, HasACounterexample) {
  ExpectCounterexample(GetParam().name,
                       GrowthModel(GetParam().rules, /*k_present=*/true, kOperations));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerGrowth,
    testing::Values(
        Variant{"flag set before the copy is published", {.copy_before_flag = false}},
        Variant{"write to the new index before the home is migrated",
                {.migrate_before_write = false}},
        Variant{"change of a migrated home in the old index only", {.write_to_new = false}},
        Variant{"old slot cleared, unpublished checksum not looked at",
                {.old_slots_stay = false, .bucket_checksum = false}},
        Variant{"lookups begin at the new index before all is migrated",
                {.all_before_switch = false}},
        Variant{"old memory reused before it is acknowledged", {.free_after_acknowledged = false}},
        Variant{"flag not looked at", {.flag_looked_at = false}},
        Variant{"miss in the new index READ before the flag was seen",
                {.read_new_after_flag = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::growth
