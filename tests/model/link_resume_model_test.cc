#include "tests/model/link_resume_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::link_resume {
namespace {

TEST(LinkResumeModel, WhatIsCommittedIsNeverLost) {
  ExpectHolds("a link that goes on over another rail", LinkResumeModel({}));
}

struct Variant {
  const char* name;
  LinkResumeRules rules;
};

class WeakerLinkResume : public testing::TestWithParam<Variant> {};

TEST_P(WeakerLinkResume, HasACounterexample) {
  ExpectCounterexample(GetParam().name, LinkResumeModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(Rules, WeakerLinkResume,
                         testing::Values(Variant{"the ring is read first", {.fenced_first = false}},
                                         Variant{"the rest is dropped", {.keeps_rest = false}},
                                         Variant{"from what completed", {.from_taken = false}},
                                         Variant{"old completions count", {.drops_acks = false}},
                                         Variant{"the same memory", {.new_memory = false}},
                                         Variant{"ships before the backup follows",
                                                 {.answered_first = false}}),
                         kVariantName);

}  // namespace
}  // namespace gannet::model::link_resume
