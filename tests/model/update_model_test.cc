#include "tests/model/update_model.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/model/model_test.h"

namespace gannet::model::update {
namespace {

std::string NameOf(const std::string& name, uint8_t operations, uint8_t gets) {
  return absl::StrCat(name, ", ", int{operations}, " operations, ", int{gets}, " GETs");
}

void ExpectHolds(const std::string& name, const UpdateRules& rules, uint8_t operations,
                 uint8_t gets) {
  model::ExpectHolds(NameOf(name, operations, gets), UpdateModel(rules, operations, gets));
}

TEST(UpdateModel, HoldsForTwoGets) { ExpectHolds("two GETs", {}, kSanitized ? 2 : 4, 2); }
TEST(UpdateModel, HoldsForOneGet) { ExpectHolds("one GET", {}, kSanitized ? 3 : 5, 1); }

// The commit word is a checksum of the content, so within a replacement in place the order of the
// stores does not matter. (The server still stores the content first, so that the commit word's
// store is the moment of change.)
TEST(UpdateModel, HoldsWithReplacementsInPlaceInAnyOrder) {
  ExpectHolds("in place in any order", {.content_before_commit = false}, 3, 2);
}

struct Variant {
  const char* name;
  UpdateRules rules;
};

class WeakerUpdate : public testing::TestWithParam<Variant> {};

TEST_P(WeakerUpdate, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(NameOf(variant.name, 3, 2), UpdateModel(variant.rules, 3, 2));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerUpdate,
    testing::Values(Variant{"two live items for a moment", {.old_dead_before_new_live = false}},
                    Variant{"new live before old dead",
                            {.old_dead_before_new_live = false, .count_live_items = false}},
                    Variant{"no checksum", {.item_checksum = false, .count_live_items = false}},
                    Variant{"state apart from the checksum",
                            {.state_in_commit_word = false, .count_live_items = false}},
                    Variant{"acknowledged before the commit word",
                            {.acknowledge_last = false, .count_live_items = false}},
                    Variant{"delete leaves the item live",
                            {.mark_dead_on_delete = false, .count_live_items = false}},
                    Variant{"a move leaves two live items", {.mark_dead_on_move = false}},
                    Variant{"a move leaves the old block live",
                            {.mark_dead_on_move = false, .count_live_items = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::update
