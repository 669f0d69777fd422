#include "server/group/members/primary_address.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace gannet {
namespace {

using Addresses = std::vector<SocketAddress>;

// A DNS that answers only when the test says so.
struct SlowNames {
  std::atomic<int> asked = 0;
  std::atomic<int> answers = 0;  // so many may end
  PrimaryAddress::Resolver Resolver(const std::shared_ptr<SlowNames>& own) {
    return [own](const std::string& endpoint) -> absl::StatusOr<Addresses> {
      const int number = ++own->asked;
      while (own->answers < number) std::this_thread::yield();
      return Addresses{
          *NumericAddress(endpoint == "n1.example:7" ? "10.0.0.1:7" : "10.0.0.2:7", 1)};
    };
  }
};

TEST(PrimaryAddressTest, ANumberIsKnownAtOnceAndNobodyIsAsked) {
  const auto names = std::make_shared<SlowNames>();
  PrimaryAddress address(names->Resolver(names));
  EXPECT_EQ(address.Find("10.0.0.9:7")->ToString(), "10.0.0.9:7");
  EXPECT_EQ(address.Find("[fd00::1]:7")->ToString(), "[fd00::1]:7");
  EXPECT_EQ(names->asked, 0);
}

// This test would hang otherwise.
TEST(PrimaryAddressTest, ANameIsLookedUpWhileTheMemberGoesOn) {
  const auto names = std::make_shared<SlowNames>();
  PrimaryAddress address(names->Resolver(names));
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(address.Find("n1.example:7"));
  while (names->asked == 0) std::this_thread::yield();
  EXPECT_FALSE(address.Find("n1.example:7"));
  names->answers = 1;
  while (!address.Find("n1.example:7")) std::this_thread::yield();
  EXPECT_EQ(address.Find("n1.example:7")->ToString(), "10.0.0.1:7");
  names->answers = 1000;
}

TEST(PrimaryAddressTest, OfAnotherPrimaryNothingIsKnownUntilItWasLookedUp) {
  const auto names = std::make_shared<SlowNames>();
  names->answers = 1;
  PrimaryAddress address(names->Resolver(names));
  while (!address.Find("n1.example:7")) std::this_thread::yield();
  EXPECT_FALSE(address.Find("n2.example:7"));
  names->answers = 1000;
  while (!address.Find("n2.example:7")) std::this_thread::yield();
  EXPECT_EQ(address.Find("n2.example:7")->ToString(), "10.0.0.2:7");
}

}  // namespace
}  // namespace gannet
