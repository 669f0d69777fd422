#include "tests/model/lost_register_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model {
namespace {

using Loss = LostRegisterModel::Loss;

TEST(LostRegisterModel, NothingIsLostWithTheRegister) {
  for (const int nodes : {2, 3}) {
    if (nodes > 2 && !Large()) return;
    ExpectHolds("an empty etcd", LostRegisterModel(LostRegisterRules{}, Loss::kEmpty, nodes));
    ExpectHolds("a restored etcd", LostRegisterModel(LostRegisterRules{}, Loss::kRestored, nodes));
  }
}

struct Variant {
  const char* name;
  LostRegisterRules rules;
  Loss loss = Loss::kEmpty;
};

class WeakerLostRegister : public testing::TestWithParam<Variant> {};

TEST_P(WeakerLostRegister, HasACounterexample) {
  ExpectCounterexample(GetParam().name, LostRegisterModel(GetParam().rules, GetParam().loss, 2));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerLostRegister,
    testing::Values(Variant{"adopted unasked", {.adopts_when_answered = false}},
                    Variant{"adopted by old answers", {.answers_are_new = false}},
                    Variant{"adopted while a successor may lead", {.naming_matters = false}},
                    Variant{"founded beside notes", {.notes_matter = false}},
                    Variant{"a lower epoch is believed", {.epochs_matter = false}, Loss::kRestored},
                    Variant{"a restored register is believed",
                            {.restored_is_doubted = false},
                            Loss::kRestored}),
    kVariantName);

}  // namespace
}  // namespace gannet::model
