#include "tests/model/join_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::join {
namespace {

constexpr uint8_t kRecords = kSanitized ? 2 : 3;

TEST(JoinModel, HoldsWithKPresent) {
  ExpectHolds("K present", JoinModel({}, /*k_present=*/true, kRecords));
}
TEST(JoinModel, HoldsWithKAbsent) {
  ExpectHolds("K absent", JoinModel({}, /*k_present=*/false, kRecords));
}

TEST(JoinModel, HoldsAtLargerSizes) {
  if (!Large()) GTEST_SKIP() << "takes a minute; set LARGE_MODELS=1";
  ExpectHolds("K present, four records", JoinModel({}, /*k_present=*/true, 4));
  ExpectHolds("K absent, four records", JoinModel({}, /*k_present=*/false, 4));
}

struct Variant {
  const char* name;
  JoinRules rules;
};

class WeakerJoin : public testing::TestWithParam<Variant> {};

TEST_P(WeakerJoin, HasACounterexample) {
  ExpectCounterexample(GetParam().name, JoinModel(GetParam().rules, /*k_present=*/true, kRecords));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerJoin,
    testing::Values(Variant{"the walk overwrites what the stream brought", {.keeps_newer = false}},
                    Variant{"no deletions kept", {.keeps_deletions = false}},
                    Variant{"no sweeps kept", {.keeps_sweeps = false}},
                    Variant{"stream opened after the walk began", {.opens_first = false}},
                    Variant{"walk begun before S is published", {.walks_after_publish = false}},
                    Variant{"first part of a long value before S", {.sends_parts = false}},
                    Variant{"no second READ of the window", {.reads_window_again = false}},
                    Variant{"in sync before the walk is over", {.ends_walk = false}},
                    Variant{"in sync before it has what is committed", {.has_committed = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::join
