#include "softverbs/tests/model/late_write_model.h"

#include <gtest/gtest.h>

#include "softverbs/tests/model/model_test.h"

namespace softverbs::model::late_write {
namespace {

TEST(LateWriteModel, NothingArrivesAfterTheErrorWasReported) {
  ExpectHolds("a WRITE between hosts", LateWriteModel(LateWriteRules{}));
}

struct Variant {
  const char* name;
  LateWriteRules rules;
};

class WeakerLateWrite : public testing::TestWithParam<Variant> {};

TEST_P(WeakerLateWrite, HasACounterexample) {
  ExpectCounterexample(GetParam().name, LateWriteModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerLateWrite,
    testing::Values(
        Variant{"packets of any age", {.target_looks_at_age = false}},
        Variant{"the age counted from the arrival", {.age_from_tick = false}},
        Variant{"a requester that reports and goes on sending", {.stops_before_report = false}},
        Variant{"an error reported while the last tick is young", {.waits_for_last_tick = false}},
        Variant{"ticks that count for all connections", {.tick_of_own_connection = false}},
        Variant{"a new process that takes old packets", {.refuses_older_connection = false}}),
    kVariantName);

}  // namespace
}  // namespace softverbs::model::late_write
