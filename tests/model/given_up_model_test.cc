#include "tests/model/given_up_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::given_up {
namespace {

TEST(GivenUpModel, Holds) { ExpectHolds("given up", GivenUpModel({})); }

struct Variant {
  const char* name;
  GivenUpRules rules;
};

class WeakerGivenUp : public testing::TestWithParam<Variant> {};

TEST_P(WeakerGivenUp, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(variant.name, GivenUpModel(variant.rules));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerGivenUp,
    testing::Values(Variant{"nothing is given up", {.gives_up = false}},
                    Variant{"all that waits is given up", {.only_in_the_way = false}},
                    Variant{"answer of what was given up recorded", {.records_no_answer = false}},
                    Variant{"no bound for what was given up", {.bounded = false}},
                    Variant{"beyond the bound the client is dropped", {.puts_off = false}},
                    Variant{"a request put off alone", {.in_order = false}},
                    Variant{"all that is put off sent again", {.first_alone = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::given_up
