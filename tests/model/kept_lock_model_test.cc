#include "tests/model/kept_lock_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::kept_lock {
namespace {

TEST(KeptLockModel, ALockOutlivesItsConnection) {
  ExpectHolds("a lock outlives its connection", KeptLockModel({}, {}));
}
TEST(KeptLockModel, NobodyHasToDieForALockToBecomeFree) {
  ExpectHolds("no death", KeptLockModel({}, {.dies = false}));
}
TEST(KeptLockModel, AClientThatSwapsLosesItsLocks) {
  ExpectHolds("a client that swaps", KeptLockModel({.by_nic = true}, {}));
}
TEST(KeptLockModel, ALockEndsWithTheLockRail) {
  ExpectHolds("the lock rail dies", KeptLockModel({}, {.lock_rails_die = 1}));
}

struct Variant {
  const char* name;
  KeptLockRules rules;
  KeptLockScenario scenario = {};
};

class WeakerKeptLock : public testing::TestWithParam<Variant> {};

TEST_P(WeakerKeptLock, HasACounterexample) {
  ExpectCounterexample(GetParam().name, KeptLockModel(GetParam().rules, GetParam().scenario));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerKeptLock,
    testing::Values(
        Variant{"believed whoever was granted", {.same_id_only = false}},
        Variant{"what was given up is forgotten", {.gives_back = false}, {.dies = false}},
        Variant{"kept for ever", {.expires = false}},
        Variant{"a late unlock is a store", {.unlock_compares = false}},
        Variant{"kept beside swaps of the client's NIC",
                {.by_nic = true, .keeps_of_swappers = true},
                {.dies = false}},
        Variant{
            "kept when the lock rail dies", {.lost_with_lock_rail = false}, {.lock_rails_die = 1}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::kept_lock
