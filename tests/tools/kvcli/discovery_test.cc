#include "tools/kvcli/discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gannet::kvcli {
namespace {

ServerAnnouncement Member(const std::string& group, int i, uint64_t epoch, bool primary = false) {
  return {.cluster = "c",
          .group = group,
          .name = "n" + std::to_string(i),
          .address = "10.0.0." + std::to_string(i) + ":7471",
          .epoch = epoch,
          .sequence = 1,
          .primary = primary};
}

TEST(DiscoveryTest, ShowsMembersByGroupWithWhatToGiveToServer) {
  Discovery found;
  EXPECT_TRUE(found.empty());
  found.Add(Member("g2", 4, 1));
  found.Add(Member("g1", 2, 3));
  found.Add(Member("g1", 1, 3, /*primary=*/true));
  found.Add({.name = "old", .address = "10.0.0.9:7471", .sequence = 1});
  found.Add({.address = "10.0.0.8:7471", .sequence = 1});
  EXPECT_EQ(found.Text(),
            "server alone: --server=10.0.0.8:7471\n"
            "server alone: --server=old@10.0.0.9:7471\n"
            "cluster c, group g1, epoch 3: --server=cluster:10.0.0.1:7471,10.0.0.2:7471\n"
            "  n1           10.0.0.1:7471  primary\n"
            "  n2           10.0.0.2:7471\n"
            "cluster c, group g2, epoch 1: --server=cluster:10.0.0.4:7471\n"
            "  n4           10.0.0.4:7471\n");
  const Json json = found.AsJson()["servers"];
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[2]["endpoint"], "cluster:10.0.0.1:7471,10.0.0.2:7471");
  EXPECT_EQ(json[2]["members"][0],
            Json({{"name", "n1"}, {"address", "10.0.0.1:7471"}, {"epoch", 3}, {"primary", true}}));
}

TEST(DiscoveryTest, OnlyThePrimaryOfTheNewestEpochIsShownAsOne) {
  Discovery found;
  found.Add(Member("g1", 1, 3, /*primary=*/true));
  found.Add(Member("g1", 2, 4, /*primary=*/true));
  const Json group = found.AsJson()["servers"][0];
  EXPECT_EQ(group["epoch"], 4);
  EXPECT_EQ(group["members"][0]["primary"], false);
  EXPECT_EQ(group["members"][1]["primary"], true);
  // What a server says later counts.
  found.Add(Member("g1", 1, 5, /*primary=*/true));
  EXPECT_EQ(found.AsJson()["servers"][0]["members"][1]["primary"], false);
}

TEST(DiscoveryTest, AFloodIsKeptWithinALimit) {
  Discovery found;
  for (size_t i = 0; i < Discovery::kServersMax + 10; ++i) {
    found.Add({.address = "h:" + std::to_string(i), .sequence = 1});
  }
  EXPECT_EQ(found.AsJson()["servers"].size(), Discovery::kServersMax);
}

}  // namespace
}  // namespace gannet::kvcli
