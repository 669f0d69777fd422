#include "tests/model/lock_model.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/model/model_test.h"

namespace gannet::model::lock {
namespace {

void ExpectHolds(const std::string& name, const LockRules& rules, const LockScenario& scenario) {
  model::ExpectHolds(name, LockModel(rules, scenario));
}

TEST(LockModel, HoldsForReadModifyWrite) {
  ExpectHolds("read-modify-write", {}, kSanitized ? LockScenario{.plain_puts = 0} : LockScenario{});
}
TEST(LockModel, HoldsForTwoDeaths) {
  ExpectHolds("two deaths", {},
              {.attempts = kSanitized ? uint8_t{1} : uint8_t{2}, .plain_puts = 0, .deaths = 2});
}
TEST(LockModel, HoldsForLeases) {
  ExpectHolds("leases", {},
              {.plain_puts = 0, .deaths = kSanitized ? uint8_t{0} : uint8_t{1}, .leases = 1});
}
TEST(LockModel, HoldsForExtendedLeases) {
  ExpectHolds("extended leases", {}, {.plain_puts = 0, .deaths = 0, .leases = 1, .extends = 1});
}
TEST(LockModel, HoldsForReadsUnderTheLock) {
  ExpectHolds("reads under the lock", {.second_only_reads = true}, {});
}

struct Variant {
  const char* name;
  LockRules rules;
  LockScenario scenario = {};
};

class WeakerLock : public testing::TestWithParam<Variant> {};

TEST_P(WeakerLock, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(variant.name, LockModel(variant.rules, variant.scenario));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerLock,
    testing::Values(Variant{"no version", {.compare_version = false}},
                    Variant{"version without the lock word", {.compare_lock_word = false}},
                    Variant{"compared outside the mutex", {.compare_under_mutex = false}},
                    Variant{"connection ids reused", {.new_connection_ids = false}},
                    Variant{"no count of acquisitions", {.count_acquisitions = false}},
                    Variant{"the dead's lock broken once", {.break_again_and_again = false}},
                    Variant{"broken by a store", {.break_by_cas = false}},
                    Variant{"a lease breaks whatever is there",
                            {.lease_breaks_its_word = false},
                            {.leases = 1}},
                    Variant{"a late unlock is a store", {.release_by_cas = false}, {.leases = 1}},
                    Variant{"a lease is extended whoever holds the lock",
                            {.extend_compares_word = false},
                            {.leases = 1, .extends = 1}},
                    Variant{"a lease is extended while its lock is being broken",
                            {.breaking_is_final = false},
                            {.leases = 1, .extends = 1}},
                    Variant{"READ with the CAS believed",
                            {.second_only_reads = true, .read_after_cas = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::lock
