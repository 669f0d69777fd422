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

std::vector<std::string> Completed(std::string_view before, std::string_view typed) {
  return CompletionOf(before, typed, kKeys).words;
}

TEST(CompletionTest, TheFirstWordIsACommand) {
  EXPECT_THAT(Completed("", "mg"), ElementsAre("mget"));
  EXPECT_THAT(Completed("", "GE"), ElementsAre("genkey", "get"));
  EXPECT_THAT(Completed("help ", "mg"), ElementsAre("mget"));
}

TEST(CompletionTest, AKeyThatWasUsedBefore) {
  EXPECT_THAT(Completed("get ", "co"), ElementsAre("color", "count"));
  EXPECT_THAT(Completed("get -- ", "co"), ElementsAre("color", "count"));
  EXPECT_THAT(Completed("stats ", "co"), IsEmpty());
  EXPECT_THAT(Completed("nothing ", "co"), IsEmpty());
  EXPECT_THAT(Completed("get 'open ", "co"), IsEmpty());
  EXPECT_THAT(Completed("mget shape ", "co"), ElementsAre("color", "count"));
  EXPECT_THAT(Completed("put --ttl 5 ", "co"), ElementsAre("color", "count"));
  EXPECT_THAT(Completed("put shape ", "co"), IsEmpty()) << "a value, and no key";
}

TEST(CompletionTest, AnActionOfCluster) {
  EXPECT_THAT(Completed("cluster ", "re"), ElementsAre("remove", "remove-group"));
  EXPECT_THAT(Completed("cluster status ", "re"), IsEmpty());
  EXPECT_THAT(Completed("cluster status ", "--c"), ElementsAre("--check", "--cluster="));
  EXPECT_THAT(Completed("cluster add g1 n1 ", "--c"), ElementsAre("--cluster="));
  EXPECT_THAT(Completed("cluster init --on_full=", "e"), ElementsAre("evict"));
}

TEST(CompletionTest, TheOptionsThatTheCommandHasAndTheLineHasNot) {
  EXPECT_THAT(Completed("get key ", "--"), ElementsAre("--meta", "--out="));
  EXPECT_THAT(Completed("get key --meta ", "--"), ElementsAre("--out="));
  EXPECT_THAT(Completed("put key value --ttl=5 ", "--t"), IsEmpty());
  EXPECT_THAT(Completed("SET key value ", "--t"), ElementsAre("--ttl="));
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
  EXPECT_THAT(Completed("put key --ttl=", "co"), IsEmpty()) << "a time, and no key";
}

}  // namespace
}  // namespace gannet::kvcli
