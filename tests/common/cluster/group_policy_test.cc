#include "common/cluster/group_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gannet {
namespace {

using ::testing::HasSubstr;

TEST(GroupPolicyTest, HasTheBytesThatTheDocsShow) {
  const GroupPolicy evict = {.on_full = OnFull::kEvict};
  EXPECT_EQ(Encode(evict), R"({"format":1,"on_full":"evict"})");
  EXPECT_EQ(*DecodeGroupPolicy(Encode(evict)), evict);
  EXPECT_EQ(*DecodeGroupPolicy(R"({"on_full":"reject","format":1})"), GroupPolicy{});
}

TEST(GroupPolicyTest, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"", "{}", R"({"format":1})", R"({"on_full":"evict"})", R"({"format":0,"on_full":"evict"})",
        R"({"format":1,"on_full":"drop"})", R"({"format":1,"on_full":true})",
        R"({"format":1,"on_full":"evict","more":1})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeGroupPolicy(text).status())) << text;
  }
  const absl::Status newer = DecodeGroupPolicy(R"({"format":2,"on_full":"evict"})").status();
  EXPECT_TRUE(absl::IsUnimplemented(newer));
  EXPECT_THAT(std::string(newer.message()), HasSubstr("Update it"));
}

}  // namespace
}  // namespace gannet
