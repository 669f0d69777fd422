#include "tests/model/moved_lock_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::moved_lock {
namespace {

TEST(MovedLockModel, WhoIsToldThatItHasTheLockHadItAllTheTime) {
  ExpectHolds("moved lock", MovedLockModel(MovedLockRules{}));
}

struct Variant {
  const char* name;
  MovedLockRules rules;
};

class WeakerMovedLock : public testing::TestWithParam<Variant> {};

TEST_P(WeakerMovedLock, HasACounterexample) {
  ExpectCounterexample(GetParam().name, MovedLockModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerMovedLock,
    testing::Values(Variant{"an extension without a lease", {.extension_needs_lease = false}},
                    Variant{"the client compares no changes", {.client_compares = false}},
                    Variant{"by the map when it was sent", {.by_newest_map = false}},
                    Variant{"an unlock without a comparison", {.unlock_compares = false}},
                    Variant{"given while a lease is left", {.leases_are_waited_out = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::moved_lock
