#include "tests/model/moved_lock_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::moved_lock {
namespace {

using Takes = MovedLockModel::Takes;

TEST(MovedLockModel, WhoIsToldThatItHasTheLockHadItAllTheTime) {
  ExpectHolds("moved lock by RPC", MovedLockModel(MovedLockRules{}));
  ExpectHolds("moved lock by swap", MovedLockModel(MovedLockRules{}, Takes::kBySwap));
}

struct Variant {
  const char* name;
  MovedLockRules rules;
  Takes takes = Takes::kByRpc;
};

class WeakerMovedLock : public testing::TestWithParam<Variant> {};

TEST_P(WeakerMovedLock, HasACounterexample) {
  ExpectCounterexample(GetParam().name, MovedLockModel(GetParam().rules, GetParam().takes));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerMovedLock,
    testing::Values(
        Variant{"an extension without a lease", {.extension_needs_lease = false}},
        Variant{"the client compares no changes", {.client_compares = false}},
        Variant{"by the map when it was sent", {.by_newest_map = false}},
        Variant{"an unlock without a comparison", {.unlock_compares = false}},
        Variant{"given while a lease is left", {.leases_are_waited_out = false}},
        Variant{"a write without a comparison", {.write_compares = false}},
        Variant{"a write without a comparison, swapped", {.write_compares = false}, Takes::kBySwap},
        Variant{"by the newest map", {.by_noted_map = false}, Takes::kBySwap},
        Variant{"taken while it was closed", {.refuses_if_closed = false}},
        Variant{"a swap without a lease", {.swap_needs_lease = false}, Takes::kBySwap}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::moved_lock
