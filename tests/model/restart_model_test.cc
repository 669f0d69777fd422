#include "tests/model/restart_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::restart {
namespace {

TEST(RestartModel, AWholeGroupBeginsAgainWithAllThatWasAcknowledged) {
  ExpectHolds("two members", RestartModel(RestartRules{}, 2));
  if (Large()) ExpectHolds("three members", RestartModel(RestartRules{}, 3));
}

struct Variant {
  const char* name;
  RestartRules rules;
  int nodes = 2;
};

class WeakerRestart : public testing::TestWithParam<Variant> {};

TEST_P(WeakerRestart, HasACounterexample) {
  ExpectCounterexample(GetParam().name, RestartModel(GetParam().rules, GetParam().nodes));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerRestart,
    testing::Values(
        Variant{"begun before all are back", {.all_are_back = false}},
        Variant{"a process with another disk counts", {.runs_match = false}},
        Variant{"a primary that took no clients", {.opened_matters = false}},
        Variant{"only this epoch's primary may lead", {.former_may_lead = false}},
        Variant{"a gap of epochs wants nobody else", {.gap_wants_all = false}, 3},
        Variant{"answers before the primary's disk has them", {.disk_before_answers = false}},
        Variant{"clients before the new primary's disk has all", {.disk_before_clients = false}},
        Variant{"clients before its run is whole", {.whole_before_clients = false}},
        Variant{"a restored run that took no clients yet", {.restored_has_opened = false}},
        Variant{"no claim of the former run", {.claims_before = false}},
        Variant{"processes not compared", {.compares_processes = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::restart
