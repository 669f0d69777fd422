#include "common/cluster/cluster_keys.h"

#include <gtest/gtest.h>

#include <string>

#include "common/protocol/connect.h"

namespace gannet {
namespace {

TEST(ClusterKeysTest, AKeySaysWhatLiesThere) {
  using enum ClusterKey::Kind;
  EXPECT_EQ(ConfigKey("c"), "/gannet/c/config");
  EXPECT_EQ(GroupKey("c", "g1"), "/gannet/c/groups/g1");
  EXPECT_EQ(NodeKey("c", "n1"), "/gannet/c/nodes/n1");
  EXPECT_EQ(ParseClusterKey("c", ConfigKey("c")), ClusterKey{.kind = kConfig});
  EXPECT_EQ(ParseClusterKey("c", GroupKey("c", "g1")), (ClusterKey{.kind = kGroup, .name = "g1"}));
  EXPECT_EQ(ParseClusterKey("c", NodeKey("c", "n1")), (ClusterKey{.kind = kNode, .name = "n1"}));
  EXPECT_EQ(WishKey("c", "g1"), "/gannet/c/wishes/g1");
  EXPECT_EQ(ParseClusterKey("c", WishKey("c", "g1")), (ClusterKey{.kind = kWish, .name = "g1"}));
  EXPECT_EQ(VersionKey("c", "n1"), "/gannet/c/versions/n1");
  EXPECT_EQ(RailsKey("c", "n1"), "/gannet/c/rails/n1");
  EXPECT_EQ(ParseClusterKey("c", RailsKey("c", "n1")), (ClusterKey{.kind = kRails, .name = "n1"}));
  EXPECT_EQ(DiskKey("c", "n1"), "/gannet/c/disks/n1");
  EXPECT_EQ(ParseClusterKey("c", DiskKey("c", "n1")), (ClusterKey{.kind = kDisk, .name = "n1"}));
  EXPECT_EQ(ParseClusterKey("c", VersionKey("c", "n1")),
            (ClusterKey{.kind = kVersion, .name = "n1"}));
  EXPECT_EQ(PolicyKey("c", "g1"), "/gannet/c/policies/g1");
  EXPECT_EQ(ParseClusterKey("c", PolicyKey("c", "g1")),
            (ClusterKey{.kind = kPolicy, .name = "g1"}));
  EXPECT_EQ(MoveKey("c", 0), "/gannet/c/moves/0");
  EXPECT_EQ(MoveKey("c", 1023), "/gannet/c/moves/1023");
  for (const uint16_t partition : {0, 7, 1023}) {
    EXPECT_EQ(ParseClusterKey("c", MoveKey("c", partition)),
              (ClusterKey{.kind = kMove, .partition = partition}));
  }
}

TEST(ClusterKeysTest, OtherKeysAreNone) {
  for (const char* key :
       {"", "/gannet/c/", "/gannet/c/confi", "/gannet/c/config/", "/gannet/d/config",
        "/gannet/cc/config", "/gannet/c/groups/", "/gannet/c/groups/a/b", "/gannet/c/nodes/ n",
        "/gannet/c/other/n", "/gannet/c/moves/", "/gannet/c/moves/1024", "/gannet/c/moves/-1",
        "/gannet/c/moves/+1", "/gannet/c/moves/07", "/gannet/c/moves/7 ", "/gannet/c/moves/g1",
        "/gannet/c/moves/4294967303"}) {
    EXPECT_FALSE(ParseClusterKey("c", key)) << key;
  }
}

TEST(ClusterKeysTest, NamesAreAlsoNamesOfServers) {
  for (const std::string& name : {std::string("a"), std::string("9"), std::string("rack-1.node_2"),
                                  std::string(kClusterNameBytesMax, 'z')}) {
    EXPECT_TRUE(IsClusterName(name)) << name;
    EXPECT_TRUE(IsServerName(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("a/b"), std::string("a,b"), std::string("a:b"),
        std::string("a b"), std::string("-a"), std::string(".."), std::string("\xc3\xa4"),
        std::string("a\0", 2), std::string(kClusterNameBytesMax + 1, 'z')}) {
    EXPECT_FALSE(IsClusterName(name)) << name;
  }
}

}  // namespace
}  // namespace gannet
