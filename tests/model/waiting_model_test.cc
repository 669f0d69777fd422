#include "tests/model/waiting_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::waiting {
namespace {

TEST(WaitingModel, WhatIsSeenOrAnsweredIsSafeAndRight) {
  ExpectHolds("waiting writes", WaitingModel(WaitingRules{}));
}

struct Variant {
  const char* name;
  WaitingRules rules;
};

class WeakerWaiting : public testing::TestWithParam<Variant> {};

TEST_P(WeakerWaiting, HasACounterexample) {
  ExpectCounterexample(GetParam().name, WaitingModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerWaiting,
    testing::Values(Variant{"published before the record is safe", {.publishes_after_sync = false}},
                    Variant{"replaced in place while it waits", {.out_of_place = false}},
                    Variant{"conditions against the published item", {.decides_by_waiting = false}},
                    Variant{"answered before it is published", {.answers_after_publish = false}},
                    Variant{"a refusal that does not wait", {.refusals_wait = false}},
                    Variant{"an eviction that does not wait", {.evictions_wait = false}},
                    Variant{"published after what it counts on expired",
                            {.undoes_past_expiry = false}},
                    Variant{"undone without what is behind", {.undoes_what_is_behind = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::waiting
