#include "tests/model/tier_read_model.h"

#include <gtest/gtest.h>

#include "tests/model/model_test.h"

namespace gannet::model::tier_read {
namespace {

TEST(TierReadModel, Holds) {
  ExpectHolds("tier read", TierReadModel({}, {}));
  ExpectHolds("tier read, a kill", TierReadModel({}, {.kills = true}));
}

struct Variant {
  const char* name;
  ReadRules rules;
  ReadScenario scenario;
};

class WeakerRead : public testing::TestWithParam<Variant> {};

TEST_P(WeakerRead, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(variant.name, TierReadModel(variant.rules, variant.scenario));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerRead,
    testing::Values(Variant{"a buffer used again under a late read", {.waits_for_disk = false}, {}},
                    Variant{"a buffer used again under a WRITE", {.waits_for_nic = false}, {}},
                    Variant{"a WRITE of what is not proved", {.proves_before_write = false}, {}},
                    Variant{"reads into the region", {.own_buffers = false}, {}},
                    Variant{"reads into the region and a kill",
                            {.own_buffers = false},
                            {.kills = true, .blocks_fit = true}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::tier_read
