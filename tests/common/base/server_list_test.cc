#include "common/base/server_list.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

using List = std::vector<std::string>;

TEST(ServerListTest, SplitsAtCommasAndDropsEmptyOnes) {
  EXPECT_EQ(SplitServerList("a:1,NAME@b:2,[::1]:3"), (List{"a:1", "NAME@b:2", "[::1]:3"}));
  EXPECT_EQ(SplitServerList(",a,,b,"), (List{"a", "b"}));
  EXPECT_EQ(SplitServerList(""), List{});
  EXPECT_EQ(SplitServerList(","), List{});
}

TEST(ServerListTest, AGroupTakesTheRest) {
  EXPECT_EQ(SplitServerList("cluster:a:1,b:2,c"), List{"cluster:a:1,b:2,c"});
  EXPECT_EQ(SplitServerList("x:1,cluster:a,b"), (List{"x:1", "cluster:a,b"}));
  EXPECT_EQ(SplitServerList("cluster:"), List{"cluster:"});
}

TEST(ServerListTest, AHostMayBeCalledCluster) {
  EXPECT_FALSE(IsGroup("cluster"));
  EXPECT_FALSE(IsGroup("cluster:7471"));
  EXPECT_EQ(SplitServerList("cluster:7471,b"), (List{"cluster:7471", "b"}));
  EXPECT_TRUE(IsGroup("cluster:a"));
  EXPECT_TRUE(IsGroup("cluster:7471x"));
  EXPECT_FALSE(IsGroup("clusters:a"));
}

}  // namespace
}  // namespace gannet
