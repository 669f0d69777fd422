#include "tests/model/tier_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::tier {
namespace {

constexpr TierScenario kPlain = {.evicts = true};
constexpr TierScenario kPromotes = {.promotes = true};
constexpr TierScenario kFails = {.errors_max = 1};
constexpr TierScenario kLies = {.lies_max = 1};
constexpr TierScenario kCrashes = {.crashes_max = 1};

TEST(TierModel, Holds) {
  ExpectHolds("tier", TierModel({}, kPlain));
  ExpectHolds("promotions", TierModel({}, kPromotes));
  ExpectHolds("a read fails", TierModel({}, kFails));
  ExpectHolds("a write is lost", TierModel({}, kLies));
  ExpectHolds("a kill", TierModel({}, kCrashes));
}

TEST(TierModel, HoldsForAllTogether) {
  TierScenario all = {.versions_max = 2,
                      .takings_max = 2,
                      .errors_max = 1,
                      .lies_max = 1,
                      .crashes_max = 1,
                      .promotes = true,
                      .evicts = true};
  ExpectHolds("all together", TierModel({}, all));
  if (!Large()) return;
  all.versions_max = all.takings_max = 3;
  ExpectHolds("all together, larger", TierModel({}, all));
}

// A read need not look at the key again if whoever joins it found a stub of its record. To look
// again is right, too, and then anybody may join.
TEST(TierModel, JoinsByKeyIfItLooksAgain) {
  ExpectHolds("joined by key", TierModel({.joins_by_record = false}, kPlain));
  ExpectHolds("never looks again", TierModel({.looks_again = false}, kPlain));
}

// What is read while its segment is taken again proves nothing, so to wait saves reads in vain. Who
// waits needs no proof, unless the disk lies.
TEST(TierModel, ProofsAndWaitsAreEachEnoughForAnHonestDisk) {
  ExpectHolds("does not wait", TierModel({.waits_for_reads = false}, kPlain));
  ExpectHolds("does not prove", TierModel({.proves_records = false}, kPlain));
}

struct Variant {
  const char* name;
  TierRules rules;
  TierScenario scenario;
};

class WeakerTier : public testing::TestWithParam<Variant> {};

TEST_P(WeakerTier, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(variant.name, TierModel(variant.rules, variant.scenario));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerTier,
    testing::Values(
        Variant{"a stub proves an item", {.stub_proves_no_item = false}, kPlain},
        Variant{
            "a stub before its bytes are on the disk", {.write_completes_first = false}, kPlain},
        Variant{"a stub before its bytes and a kill", {.write_completes_first = false}, kCrashes},
        Variant{"a stub of a version that was replaced", {.compares_versions = false}, kPlain},
        Variant{"a lost write that nothing proves", {.proves_records = false}, kLies},
        Variant{"a segment taken again during a read",
                {.proves_records = false, .waits_for_reads = false},
                kPlain},
        Variant{"proved by the stubs version", {.by_its_own_version = false}, kPlain},
        Variant{
            "a promotion replaces what is there", {.promotes_that_stub_only = false}, kPromotes},
        Variant{"two promotions", {.promotes_stubs_only = false}, kPromotes},
        Variant{
            "a record that counts as there for ever", {.forgets_taken_records = false}, kPromotes},
        Variant{"a read that ends after its stub changed",
                {.joins_by_record = false, .looks_again = false},
                kPlain},
        Variant{"a miss before the stub is gone", {.deletes_first = false}, kFails},
        Variant{"a segment is taken before its stubs", {.stubs_go_first = false}, kPlain},
        Variant{"a restart at the first segment", {.goes_on_behind_stubs = false}, kCrashes},
        Variant{"a write of the former process", {.waits_for_predecessor = false}, kCrashes}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::tier
