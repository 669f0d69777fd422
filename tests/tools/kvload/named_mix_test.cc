#include "tools/kvload/named_mix.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tools/kvload/counter_check.h"

namespace gannet::kvload {
namespace {

constexpr Sizes kMixSizes{.key_bytes = 8, .value_bytes = 100};

TEST(NamedMixTest, SharesAreTakenInProportionToTheirSum) {
  const auto mix = ParseMix("get:6,set:3,gets:1");
  ASSERT_TRUE(mix.ok()) << mix.status();
  ASSERT_EQ(mix->parts.size(), 3u);
  EXPECT_EQ(mix->parts[0].kind, OpKind::kGet);
  EXPECT_DOUBLE_EQ(mix->parts[0].share, 0.6);
  EXPECT_EQ(mix->parts[1].kind, OpKind::kPut);
  EXPECT_EQ(mix->parts[2].kind, OpKind::kGet);
  EXPECT_TRUE(ParseMix("delete:0.5,get:0.5")->Removes());
  EXPECT_TRUE(ParseMix("incr:1")->HasOwnKeys());
  EXPECT_FALSE(mix->HasOwnKeys());
}

TEST(NamedMixTest, WhatIsNoMixIsRefused) {
  for (const char* wrong : {"", "get", "get:", "get:0", "get:-1", "get:x", "get:1,", "fetch:1",
                            "insert:1", "raw_read:1", "get:1:2", "get:nan"}) {
    EXPECT_FALSE(ParseMix(wrong).ok()) << wrong;
  }
}

TEST(NamedMixTest, EveryClusterHasAMix) {
  for (const uint32_t number : {2, 11, 14, 16, 18, 22, 23, 29, 31, 37, 50, 52, 53}) {
    const auto cluster = ClusterOf(number);
    ASSERT_TRUE(cluster.ok()) << number;
    EXPECT_TRUE(ParseMix(cluster->mix).ok()) << number;
    EXPECT_GT(cluster->ttl.count(), 0);
  }
  EXPECT_FALSE(ClusterOf(1).ok());
}

TEST(MixSourceTest, DrawsTheSharesAndKeepsKeysOfCountersApart) {
  MixSource source(*ParseMix("get:0.5,incr:0.3,append:0.1,delete:0.1"),
                   {.operations = 100'000,
                    .records = 100,
                    .sizes = kMixSizes,
                    .distribution = Distribution::kUniform,
                    .seed = 1,
                    .thread = 1,
                    .threads = 2});
  std::map<OpKind, int> counts;
  std::map<char, std::set<std::string>> keys;
  LoadOperation operation;
  while (source.Next(operation)) {
    ++counts[operation.kind];
    keys[operation.key[0]].insert(operation.key);
    ASSERT_EQ(operation.key.size(), kMixSizes.key_bytes);
  }
  EXPECT_NEAR(counts[OpKind::kGet], 50'000, 1'000);
  EXPECT_NEAR(counts[OpKind::kIncr], 30'000, 1'000);
  EXPECT_NEAR(counts[OpKind::kAppend], 10'000, 600);
  EXPECT_NEAR(counts[OpKind::kDelete], 10'000, 600);
  EXPECT_EQ(keys['0'].size(), 100u);
  EXPECT_EQ(keys['c'].size(), 100u);
  EXPECT_TRUE(keys['c'].contains("c0000001")) << "of record 0 and thread 1";
}

TEST(CounterCheckTest, EachNumberIsTheLastOneAndWhatWasAdded) {
  CounterCheck check;
  EXPECT_TRUE(check.IsRight("a", 1, 7, false));  // counted by an earlier run
  EXPECT_TRUE(check.IsRight("a", 1, 8, false));
  EXPECT_TRUE(check.IsRight("a", -1, 7, false));
  EXPECT_FALSE(check.IsRight("a", 1, 9, false)) << "done twice";
  EXPECT_FALSE(check.IsRight("a", 1, 9, false)) << "lost";
  EXPECT_TRUE(check.IsRight("b", 1, 1, false));
  EXPECT_FALSE(check.IsRight("b", 1, 1, false));
  EXPECT_TRUE(check.IsRight("b", 1, 1, true)) << "it expired";
  check.Forget("b");
  EXPECT_TRUE(check.IsRight("b", 1, 5, false));
}

}  // namespace
}  // namespace gannet::kvload
