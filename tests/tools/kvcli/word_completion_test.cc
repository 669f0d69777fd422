#include "tools/kvcli/word_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace gannet::kvcli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::set<std::string> kKeys = {"color", "count", "shape"};

std::vector<std::string> Words(std::string_view before, std::string_view typed) {
  return CompletionOf(before, typed, kKeys).words;
}

TEST(CompletionTest, TheFirstWordIsACommand) {
  EXPECT_THAT(Words("", "mg"), ElementsAre("mget"));
  EXPECT_THAT(Words("", "GE"), ElementsAre("genkey", "get"));
  EXPECT_THAT(Words("help ", "mg"), ElementsAre("mget"));
}

TEST(CompletionTest, AKeyThatWasUsedBefore) {
  EXPECT_THAT(Words("get ", "co"), ElementsAre("color", "count"));
  EXPECT_THAT(Words("get -- ", "co"), ElementsAre("color", "count"));
  EXPECT_THAT(Words("stats ", "co"), IsEmpty());
  EXPECT_THAT(Words("nothing ", "co"), IsEmpty());
  EXPECT_THAT(Words("get 'open ", "co"), IsEmpty());
}

TEST(CompletionTest, TheOptionsThatTheCommandHasAndTheLineHasNot) {
  EXPECT_THAT(Words("get key ", "--"), ElementsAre("--meta", "--out="));
  EXPECT_THAT(Words("get key --meta ", "--"), ElementsAre("--out="));
  EXPECT_THAT(Words("put key value --ttl=5 ", "--t"), IsEmpty());
  EXPECT_THAT(Words("SET key value ", "--t"), ElementsAre("--ttl="));
}

TEST(CompletionTest, AFileWhereOneIsNamed) {
  EXPECT_TRUE(CompletionOf("put key --file=", "we", kKeys).files);
  EXPECT_TRUE(CompletionOf("put key --file ", "we", kKeys).files);
  EXPECT_TRUE(CompletionOf("get key --out=", "", kKeys).files);
  EXPECT_TRUE(CompletionOf("lock key -- ", "./ni", kKeys).files);
  EXPECT_TRUE(CompletionOf("upgrade-check ", "/dev", kKeys).files);
  EXPECT_TRUE(CompletionOf("upgrade-check /dev/shm/gannet --kvserver=", "/opt", kKeys).files);
  EXPECT_FALSE(CompletionOf("put key --file=weights ", "co", kKeys).files);
  EXPECT_FALSE(CompletionOf("put key --ttl=", "co", kKeys).files);
  EXPECT_THAT(Words("put key --ttl=", "co"), IsEmpty()) << "a time, and no key";
}

}  // namespace
}  // namespace gannet::kvcli
