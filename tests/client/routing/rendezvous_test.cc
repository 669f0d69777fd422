#include "client/routing/rendezvous.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gannet {
namespace {

const std::vector<std::string> kThree = {"10.0.0.1:7471", "10.0.0.2:7471", "10.0.0.3:7471"};

std::string Owner(const std::vector<std::string>& endpoints, const std::string& key) {
  return endpoints[Rendezvous(endpoints).ServerOf(key)];
}

// A client that chooses differently finds none of the keys stored before.
TEST(RendezvousTest, Golden) {
  std::string owners;
  for (int i = 0; i < 24; ++i) {
    owners += std::to_string(Rendezvous(kThree).ServerOf("key" + std::to_string(i)));
  }
  EXPECT_EQ(owners, "022111100100100020012120");
}

TEST(RendezvousTest, OneServerOwnsEverything) {
  EXPECT_EQ(Rendezvous({"10.0.0.1:7471"}).ServerOf("any"), 0u);
}

TEST(RendezvousTest, TheOrderOfTheListDoesNotMatter) {
  const std::vector<std::string> turned = {kThree[2], kThree[0], kThree[1]};
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "key" + std::to_string(i);
    EXPECT_EQ(Owner(kThree, key), Owner(turned, key));
  }
}

TEST(RendezvousTest, TakingAServerAwayMovesOnlyItsKeys) {
  const std::vector<std::string> two = {kThree[0], kThree[2]};
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "key" + std::to_string(i);
    const std::string before = Owner(kThree, key);
    if (before == kThree[1]) continue;
    EXPECT_EQ(Owner(two, key), before);
  }
}

TEST(RendezvousTest, SpreadsEvenly) {
  std::vector<int> count(3);
  const Rendezvous rendezvous(kThree);
  for (int i = 0; i < 30'000; ++i) ++count[rendezvous.ServerOf("key" + std::to_string(i))];
  for (int n : count) {
    EXPECT_GT(n, 9'500);
    EXPECT_LT(n, 10'500);
  }
}

}  // namespace
}  // namespace gannet
