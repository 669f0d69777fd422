#include "tests/model/doorbell_model.h"

#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "absl/strings/str_join.h"
#include "tests/model/state_space.h"

namespace gannet::model {
namespace {

constexpr uint64_t kStatesMax = 20'000'000;

Exploration ExploreAndPrint(const std::string& name, const DoorbellRules& rules,
                            const DoorbellScenario& scenario) {
  const Exploration result = Explore(DoorbellModel(rules, scenario), kStatesMax);
  std::cout << name << ": " << result.states << " states, " << result.transitions << " transitions"
            << (result.broken.empty() ? "" : "; counterexample: ") << result.broken << std::endl;
  return result;
}

void ExpectHolds(const std::string& name, const DoorbellRules& rules,
                 const DoorbellScenario& scenario) {
  const Exploration result = ExploreAndPrint(name, rules, scenario);
  EXPECT_TRUE(result.complete) << "not all states were visited";
  EXPECT_EQ(result.broken, "") << absl::StrJoin(result.trace, "\n");
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
  const Exploration result = ExploreAndPrint(variant.name, variant.rules, variant.scenario);
  EXPECT_NE(result.broken, "");
  for (const std::string& step : result.trace) EXPECT_NE(step, "");
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
        Variant{"no standby", {.standby = false}, {.lazy = true}}),
    [](const auto& param_info) {
      std::string name = param_info.param.name;
      for (char& c : name) c = isalnum(c) ? c : '_';
      return name;
    });

}  // namespace
}  // namespace gannet::model
