#include "tests/model/rail_read_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::rail_read {
namespace {

TEST(RailReadModel, WhatMovesIsAnsweredRight) { ExpectHolds("reads move", RailReadModel({})); }

struct Variant {
  const char* name;
  RailReadRules rules;
};

class WeakerRailRead : public testing::TestWithParam<Variant> {};

TEST_P(WeakerRailRead, HasACounterexample) {
  ExpectCounterexample(GetParam().name, RailReadModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerRailRead,
    testing::Values(Variant{"posted again unreaped", {.reaps_first = false}},
                    Variant{"READs wait for their rail", {.reads_move = false}},
                    Variant{"an id is used again", {.new_ids = false}},
                    Variant{"a destroyed queue pair goes on", {.destroy_ends = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::rail_read
