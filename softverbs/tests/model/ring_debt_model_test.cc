#include "softverbs/tests/model/ring_debt_model.h"

#include <gtest/gtest.h>

#include "softverbs/tests/model/model_test.h"

namespace softverbs::model::ring_debt {
namespace {

TEST(RingDebtModel, LeavesNoPacketToASleeper) {
  ExpectHolds("a shared debt", RingDebtModel(RingDebtRules{}));
}

struct Variant {
  const char* name;
  RingDebtRules rules;
};

class WeakerRingDebt : public testing::TestWithParam<Variant> {};

TEST_P(WeakerRingDebt, HasACounterexample) {
  ExpectCounterexample(GetParam().name, RingDebtModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerRingDebt,
    testing::Values(Variant{"the debt noted before the packet", {.packet_before_debt = false}},
                    Variant{"the word read before the debt is taken", {.word_after_debt = false}},
                    Variant{"a ring noted and not made", {.rings_what_it_noted = false}}),
    kVariantName);

}  // namespace
}  // namespace softverbs::model::ring_debt
