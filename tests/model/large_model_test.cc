#include "tests/model/large_model.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/model/model_test.h"

namespace gannet::model::large {
namespace {

std::string NameOf(const std::string& name, uint8_t operations, uint8_t gets) {
  return absl::StrCat(name, ", ", int{operations}, " operations, ", int{gets}, " GETs");
}

void ExpectHolds(const std::string& name, uint8_t operations, uint8_t gets) {
  model::ExpectHolds(NameOf(name, operations, gets), LargeModel({}, operations, gets));
}

TEST(LargeModel, HoldsForTwoGets) { ExpectHolds("two GETs", kSanitized ? 2 : 4, 2); }
TEST(LargeModel, HoldsForOneGet) { ExpectHolds("one GET", kSanitized ? 3 : 5, 1); }

struct Variant {
  const char* name;
  LargeRules rules;
  uint8_t operations = 3;
  uint8_t gets = 2;
};

class WeakerLarge : public testing::TestWithParam<Variant> {};

TEST_P(WeakerLarge, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(NameOf(variant.name, variant.operations, variant.gets),
                       LargeModel(variant.rules, variant.operations, variant.gets));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerLarge,
    testing::Values(
        Variant{"header not READ again", {.second_header = false}},
        Variant{"header READ again together with the value", {.second_after_value = false}},
        Variant{"header first READ together with the value", {.first_header = false}},
        Variant{"replaced in place", {.out_of_place = false}},
        Variant{"new live before old dead", {.old_dead_before_new_live = false}},
        Variant{"a block reused before it is dead", {.dead_before_reuse = false}},
        Variant{"live before the value is complete", {.content_before_live = false}},
        Variant{"moved away and back under the same commit word",
                {.commit_names_placing = false},
                4,
                1},
        Variant{"a head believed though it is another key's", {.head_names_key = false}},
        Variant{"a remembered head believed though the word is another", {.same_head = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::large
