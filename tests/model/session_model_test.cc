#include "tests/model/session_model.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/model/model_test.h"

namespace gannet::model::session {
namespace {

using Operations = std::array<SessionModel::Operation, SessionModel::kRequests>;
constexpr Operations kIncrements = {SessionModel::kIncrement, SessionModel::kIncrement};
constexpr Operations kDeleteAndPut = {SessionModel::kDelete, SessionModel::kPut};
constexpr Operations kPutAndDelete = {SessionModel::kPut, SessionModel::kDelete};

TEST(SessionModel, HoldsForIncrements) { ExpectHolds("increments", SessionModel({}, kIncrements)); }
TEST(SessionModel, HoldsForDeleteAndPut) {
  ExpectHolds("delete and put", SessionModel({}, kDeleteAndPut));
}
TEST(SessionModel, HoldsForPutAndDelete) {
  ExpectHolds("put and delete", SessionModel({}, kPutAndDelete));
}

struct Variant {
  const char* name;
  SessionRules rules;
  Operations operations = kIncrements;
};

class WeakerSession : public testing::TestWithParam<Variant> {};

TEST_P(WeakerSession, HasACounterexample) {
  const Variant& variant = GetParam();
  ExpectCounterexample(variant.name, SessionModel(variant.rules, variant.operations));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WeakerSession,
    testing::Values(Variant{"answer in a second record", {.answers_in_change = false}},
                    Variant{"refusal not streamed", {.streams_refusals = false}, kDeleteAndPut},
                    Variant{"undo without numbers", {.undo_has_numbers = false}, kDeleteAndPut},
                    Variant{"joiner without sessions", {.sends_sessions = false}},
                    Variant{"end of a session not recorded", {.records_end = false}},
                    Variant{"unknown token accepted", {.refuses_unknown_token = false}}),
    kVariantName);

}  // namespace
}  // namespace gannet::model::session
