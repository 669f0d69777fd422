#include "softverbs/tests/model/doorbell_model.h"

#include <gtest/gtest.h>

#include <string>

#include "softverbs/tests/model/model_test.h"

namespace softverbs::model::doorbell {
namespace {

void ExpectHolds(const std::string& name, const DoorbellRules& rules,
                 const DoorbellScenario& scenario) {
  model::ExpectHolds(name, DoorbellModel(rules, scenario));
}

// One that always comes back needs no standby.
TEST(DoorbellModel, LosesNoWakeUpOfOneThatWaits) {
  ExpectHolds("waits", {.standby = false}, {.sends = 3, .quiet_packets = 2});
}
TEST(DoorbellModel, LosesNoWakeUpWithStandby) {
  ExpectHolds("waits, with standby", {}, {.sends = 2, .quiet_packets = 2});
}
TEST(DoorbellModel, ServesPeersOfOneThatArmedAndDoesNotWait) {
  ExpectHolds("lazy", {}, {.sends = 2, .quiet_packets = 2, .lazy = true});
}

struct Variant {
  const char* name;
  DoorbellRules rules;
  DoorbellScenario scenario = {};
};

class WeakerDoorbell : public testing::TestWithParam<Variant> {};

TEST_P(WeakerDoorbell, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(variant.name, DoorbellModel(variant.rules, variant.scenario));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerDoorbell,
    testing::Values(
        Variant{"the word read before the packet is published",
                {.packet_before_word = false, .standby = false}},
        Variant{"no look after a sleep was published",
                {.look_after_publishing = false, .standby = false}},
        Variant{"rung and no new word", {.new_word_when_rung = false, .standby = false}},
        Variant{"tokens taken without a look", {.look_after_tokens = false, .standby = false}},
        Variant{"rung for nothing and not asleep again",
                {.sleep_again_for_nothing = false, .standby = false}},
        Variant{"no standby", {.standby = false}, {.lazy = true}},
        Variant{"a ring owed when the engine goes to sleep",
                {.standby = false, .pays_before_sleep = false}}),
    kVariantName);

}  // namespace
}  // namespace softverbs::model::doorbell
