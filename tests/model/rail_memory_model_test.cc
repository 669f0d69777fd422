#include "tests/model/rail_memory_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::rail_memory {
namespace {

TEST(RailMemoryModel, NothingLateIsSeen) { ExpectHolds("late", RailMemoryModel({})); }

struct Variant {
  const char* name;
  RailMemoryRules rules;
};

class WeakerRailMemory : public testing::TestWithParam<Variant> {};

TEST_P(WeakerRailMemory, HasACounterexample) {
  ExpectCounterexample(GetParam().name, RailMemoryModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerRailMemory,
    testing::Values(Variant{"a buffer is used again unreaped", {.client_reaps = false}},
                    Variant{"a place is free unreaped", {.owner_reaps = false}},
                    Variant{"a notice by another rail", {.notice_on_rail = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::rail_memory
