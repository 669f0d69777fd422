#include "tests/model/lookup_model.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/model/model_test.h"

namespace gannet::model::lookup {
namespace {

constexpr uint8_t kOperations = kSanitized ? 2 : 3;
std::string NameOf(const std::string& name, const Scenario& scenario) {
  return absl::StrCat(name, ", ", int{scenario.operations_max}, " operations");
}

void ExpectHolds(const std::string& name, const Rules& rules, const Scenario& scenario) {
  model::ExpectHolds(NameOf(name, scenario), LookupModel(rules, scenario));
}

// The rules are right, for every operation and for every place where K and X may be at first.

TEST(LookupModel, HoldsWithKAlone) {
  ExpectHolds("K at home", {}, {.k = kHome, .operations_max = kOperations});
}
TEST(LookupModel, HoldsWithKAbsent) {
  ExpectHolds("K absent", {}, {.k_present = false, .operations_max = kOperations});
}
TEST(LookupModel, HoldsWithXNext) {
  ExpectHolds("K at home, X next", {},
              {.k = kHome, .x = kNext, .x_present = true, .operations_max = kOperations});
}
TEST(LookupModel, HoldsWithKNext) {
  ExpectHolds("K next, X at home", {},
              {.k = kNext, .x = kHome, .x_present = true, .operations_max = kOperations});
}
TEST(LookupModel, HoldsWithKInTheStash) {
  ExpectHolds("K in the stash, X at home", {},
              {.k = kStash, .x = kHome, .x_present = true, .operations_max = kOperations});
}
TEST(LookupModel, HoldsWithXInTheStash) {
  ExpectHolds("K next, X in the stash", {},
              {.k = kNext, .x = kStash, .x_present = true, .operations_max = kOperations});
}
TEST(LookupModel, HoldsThroughManyMoves) {
  ExpectHolds("K moves", {},
              {.k = kHome, .operations = kMoveK | kMoveKStash, .operations_max = kOperations + 1});
}
TEST(LookupModel, HoldsThroughManyReplacements) {
  ExpectHolds("K and X replaced", {},
              {.k = kHome,
               .x = kNext,
               .x_present = true,
               .operations = kReplaceKOutOfPlace | kReplaceXOutOfPlace,
               .operations_max = kOperations + 1});
}

// Within the window the two counters make either order right. Destination first helps readers:
// otherwise they may find the key in neither bucket, and have to look again.
TEST(LookupModel, HoldsWithEitherOrderOfAMoveWithinTheWindow) {
  ExpectHolds(
      "source first within the window", {.destination_first = false},
      {.operations = kAllOperations & ~(kMoveKStash | kMoveXStash), .operations_max = kOperations});
}

// Every rule is needed: without it there is a counterexample. This also shows that the model can
// fail.

struct Variant {
  const char* name;
  Rules rules;
  Scenario scenario;
};

class WeakerLookup : public testing::TestWithParam<Variant> {};

TEST_P(WeakerLookup, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(NameOf(variant.name, variant.scenario),
                       LookupModel(variant.rules, variant.scenario));
}

constexpr Scenario kKAlone = {.k = kHome, .operations_max = 3};

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerLookup,
    testing::Values(
        Variant{"no counter bump at the destination", {.bump_destination = false}, kKAlone},
        Variant{"no counter bump at the source", {.bump_source = false}, kKAlone},
        Variant{"counters not compared", {.compare_counters = false}, kKAlone},
        Variant{"a counter that wraps within one READ", {.counter_values = 2}, kKAlone},
        Variant{"no bucket checksum", {.bucket_checksum = false}, kKAlone},
        Variant{"no order between publications", {.fence_between_publications = false}, kKAlone},
        Variant{"stash move: home not bumped", {.bump_home_on_stash_move = false}, kKAlone},
        Variant{"stash move: next not bumped", {.bump_next_on_stash_move = false}, kKAlone},
        Variant{"stash move: source first", {.destination_first = false}, kKAlone},
        Variant{"delete: slot cleared while live", {.dead_before_slot_cleared = false}, kKAlone},
        Variant{"insert: live before its slot", {.live_after_slot_published = false}, kKAlone},
        Variant{"block reused before its slot is published",
                {.free_after_publication = false},
                kKAlone},
        Variant{"no item checksum", {.item_checksum = false}, kKAlone},
        Variant{"item's state apart from its checksum", {.state_in_commit_word = false}, kKAlone},
        Variant{"window not READ again", {.window_again = false}, kKAlone},
        Variant{"window READ again, but no version",
                {.bump_version = false},
                {.k = kHome,
                 .x = kNext,
                 .x_present = true,
                 .operations = kReplaceKOutOfPlace | kReplaceXOutOfPlace,
                 .operations_max = 4}},
        Variant{"miss believed although a slot in the stash matched",
                {.ask_when_stash_matched = false},
                {.k = kStash, .operations = kReplaceKOutOfPlace | kInsertX, .operations_max = 2}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::lookup
