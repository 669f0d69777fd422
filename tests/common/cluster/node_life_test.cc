#include "common/cluster/node_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/cluster/cluster_map.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

NodeLife Life() {
  return {.incarnation = 0xb2,
          .group = "g1",
          .known = {.history = 0x11,
                    .epoch = 3,
                    .primary = {"n1", 0xb1},
                    .in_sync = {{"n1", 0xb1}, {"n2", 0xb2}},
                    .members = {"n1", "n2"}},
          .map = FillPartitions({"g1"}),
          .policy = {.settings = {{"on_full", "evict"}, {"shards", "3"}}},
          .leads = true,
          .applied = 4096};
}

TEST(NodeLifeTest, ComesBackAsItWasEncoded) {
  const std::string text = Encode(Life());
  EXPECT_THAT(text, StartsWith(R"({"format":1,"incarnation":"00000000000000b2","group":"g1",)"
                               R"("leads":true,"applied":4096,"known":{"history":)"
                               R"("0000000000000011","epoch":3,)"));
  const auto again = DecodeNodeLife(text);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, Life());
}

TEST(NodeLifeTest, RefusesWhatGannetDoesNotWrite) {
  const std::string text = Encode(Life());
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(DecodeNodeLife(text.substr(0, length)).ok()) << length;
  }
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return std::string(DecodeNodeLife(changed).status().message());
  };
  EXPECT_THAT(error_with("\"format\":1", "\"format\":2"), HasSubstr("newer than this version"));
  EXPECT_THAT(error_with("00000000000000b2", "0000000000000000"), HasSubstr("no incarnation"));
  EXPECT_THAT(error_with("\"g1\"", "\"g/1\""), HasSubstr("the name of a group"));
  EXPECT_THAT(error_with("4096", "-1"), HasSubstr("applied is no number"));
  EXPECT_THAT(error_with("\"leads\":true", "\"leads\":1"), HasSubstr("neither true nor false"));
  EXPECT_THAT(error_with("\"known\":{", "\"known\":{\"more\":1,"),
              HasSubstr("does not know: more"));
  EXPECT_THAT(error_with("\"map\":{", "\"map\":[],\"other\":{"), HasSubstr("map is neither"));
  EXPECT_THAT(error_with(",\"policy\":{", ",\"other\":{"), HasSubstr("no policy"));
  EXPECT_THAT(error_with("\"shards\":\"3\"", "\"shards\":3"), HasSubstr("shards is no string"));
  NodeLife unfounded = Life();
  unfounded.known = {.history = 0x11, .members = {"n1"}};
  EXPECT_FALSE(Check(unfounded).ok());
}

}  // namespace
}  // namespace gannet
