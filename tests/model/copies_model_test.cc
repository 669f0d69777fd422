#include "tests/model/copies_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model {
namespace {

TEST(CopiesModel, BecomesWholeAgainAndAcknowledgesWhatHasItsCopies) {
  ExpectHolds("copies that are missing", CopiesModel(CopiesRules{}));
}

struct Variant {
  const char* name;
  CopiesRules rules;
};

class WeakerCopies : public testing::TestWithParam<Variant> {};

TEST_P(WeakerCopies, HasACounterexample) {
  ExpectCounterexample(GetParam().name, CopiesModel(GetParam().rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerCopies,
    testing::Values(
        Variant{"an undo that waits for copies", {.undoes_without_copies = false}},
        Variant{"an undo that waits for room in the ring", {.undoes_without_room = false}},
        Variant{"answers recorded before the deletion has room", {.answers_with_deletion = false}},
        Variant{"published once there are copies", {.publishes_without_copies = false}},
        Variant{"a disk that waits for what is published", {.disk_waits_for_nobody = false}},
        Variant{"copies asked for only when a write is taken", {.doubts = false}},
        Variant{"a backup counted until its removal is known", {.counts_what_may_win = false}},
        Variant{"a backup that leaves while the primary may commit",
                {.leaves_without_lease = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model
