#include "common/cluster/group_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(GroupPolicyTest, HasTheBytesThatTheDocsShow) {
  const GroupPolicy policy = {.settings = {{"sync", "always"}, {"on_full", "evict"}}};
  EXPECT_EQ(Encode(policy), R"({"format":1,"on_full":"evict","sync":"always"})");
  EXPECT_EQ(*DecodeGroupPolicy(Encode(policy)), policy);
  EXPECT_EQ(*DecodeGroupPolicy(R"({"on_full":"reject","format":1})"), DefaultGroupPolicy());
  EXPECT_EQ(*DecodeGroupPolicy(R"({"format":1})"), GroupPolicy{});
}

TEST(GroupPolicyTest, KeepsWhatAnotherVersionKnows) {
  const std::string text = R"({"format":1,"on_full":"spill","shards":"3","sync":"none"})";
  const auto policy = DecodeGroupPolicy(text);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->Find("sync"), "none");
  EXPECT_EQ(policy->Find("on_full"), std::nullopt) << "no value of this version";
  EXPECT_EQ(policy->Find("shards"), std::nullopt);
  EXPECT_THAT(policy->Unknown(), ElementsAre("on_full=spill", "shards=3"));
  EXPECT_EQ(Encode(*policy), text);
  const GroupPolicy changed =
      policy->With({.settings = {{"on_full", "evict"}, {"silence_ms", "900"}}});
  EXPECT_EQ(Encode(changed),
            R"({"format":1,"on_full":"evict","shards":"3","silence_ms":"900","sync":"none"})");
}

TEST(GroupPolicyTest, RefusesWhatGannetDoesNotWrite) {
  std::string many = R"({"format":1)";
  for (int i = 0; i < 65; ++i) many += ",\"x" + std::to_string(i) + "\":\"1\"";
  const std::string long_value = R"({"format":1,"x":")" + std::string(65, 'x') + "\"}";
  for (const std::string& text : std::initializer_list<std::string>{
           "", "{}", "[]", R"({"on_full":"evict"})", R"({"format":0,"on_full":"evict"})",
           R"({"format":1,"on_full":true})", R"({"format":1,"x":1})", R"({"format":1,"x y":"1"})",
           R"({"format":1,"x":"a\u001b[2J"})", R"({"format":1,"x":"a b"})", many + "}",
           long_value}) {
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeGroupPolicy(text).status())) << text;
  }
  const absl::Status newer = DecodeGroupPolicy(R"({"format":2,"on_full":"evict"})").status();
  EXPECT_TRUE(absl::IsUnimplemented(newer));
  EXPECT_THAT(std::string(newer.message()), HasSubstr("Update it"));
}

TEST(GroupPolicyTest, EachSettingSaysWhatItTakes) {
  const struct {
    const char* name;
    const char* taken;
    const char* refused;
    const char* says;
  } cases[] = {{"on_full", "evict", "drop", "on_full must be reject or evict"},
               {"sync", "interval", "often", "sync must be always, interval or none"},
               {"sync_interval_ms", "60000", "0", "sync_interval_ms must be 1 to 60000"},
               {"session_grace_ms", "0", "86400001", "must be 0 to 86400000"},
               {"silence_ms", "100", "99", "must be 100 to 60000"},
               {"index_slots", "0", "-1", "must be 0 to"},
               {"index_grows", "false", "no", "must be true or false"},
               {"lock_words", "1", "01", "must be 1 to 16777216"}};
  EXPECT_EQ(std::size(cases), PolicySettings().size());
  for (const auto& c : cases) {
    const PolicySetting* const setting = FindPolicySetting(c.name);
    ASSERT_NE(setting, nullptr) << c.name;
    EXPECT_TRUE(setting->Check(c.taken).ok()) << c.name;
    EXPECT_THAT(std::string(setting->Check(c.refused).message()), HasSubstr(c.says));
    EXPECT_FALSE(setting->Check("").ok()) << c.name;
  }
  EXPECT_EQ(FindPolicySetting("memory"), nullptr);
  EXPECT_THAT(DefaultGroupPolicy().Unknown(), IsEmpty());
}

}  // namespace
}  // namespace gannet
