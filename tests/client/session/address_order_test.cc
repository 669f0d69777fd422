#include "client/session/address_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>

#include "client/session/connect_attempts.h"
#include "common/base/clock.h"

namespace gannet {
namespace {

SocketAddress Address(int i) { return NumericAddress("10.0.0." + std::to_string(i), 7471).value(); }

std::vector<SocketAddress> List(std::initializer_list<int> numbers) {
  std::vector<SocketAddress> list;
  for (const int i : numbers) list.push_back(Address(i));
  return list;
}

// Tries all addresses of a round, and returns them.
std::vector<std::string> Round(AddressOrder& order) {
  std::vector<std::string> tried;
  do {
    tried.push_back(order.current().HostString());
  } while (order.GoOn());
  return tried;
}

using ::testing::ElementsAre;

TEST(AddressOrderTest, AnAddressThatIsNewIsTriedFirst) {
  AddressOrder order(List({1, 2}));
  order.GoOn();
  order.Replace(List({1, 3, 2}));
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.3", "10.0.0.2", "10.0.0.1"));
}

TEST(AddressOrderTest, AddressesThatAreGoneAreNotTried) {
  AddressOrder order(List({1, 2}));
  order.BeginBehind();
  order.Replace(List({3}));
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.3"));
}

TEST(AddressOrderTest, TheSameAddressesInAnotherOrderChangeNothing) {
  AddressOrder order(List({1, 2, 3}));
  order.GoOn();
  order.Replace(List({3, 1, 2}));
  EXPECT_EQ(order.current().HostString(), "10.0.0.2");
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.2", "10.0.0.3"));
}

TEST(AddressOrderTest, WhatWasLearnedStays) {
  AddressOrder order(List({1}));
  EXPECT_TRUE(order.GoOnTo(Address(9)));
  order.Replace(List({2}));
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.2", "10.0.0.9"));
  // A learned one is listed now. It is there once.
  order.Replace(List({9, 4}));
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.4", "10.0.0.9"));
}

TEST(AddressOrderTest, LearnsTheMembersAndForgetsThoseThatAreNone) {
  AddressOrder order(List({1}));
  order.Learn(List({1, 2, 3}));
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.1", "10.0.0.2", "10.0.0.3"));
  order.Learn(List({3, 4}));
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.1", "10.0.0.3", "10.0.0.4"));
  order.GoOn();
  order.Learn(List({4}));
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.3", "10.0.0.4")) << "the current one is kept";
}

TEST(AddressOrderTest, KeepsListedOnesOnlyIfTheyAreMembersOnceNoneIsListed) {
  AddressOrder order(List({1, 2, 3}));
  order.GoOn();
  order.ListNone();
  order.Learn(List({3, 4}));
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.2", "10.0.0.3", "10.0.0.4"))
      << "2 is the current one";
  order.GoOn();
  order.Learn(List({3, 4}));
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.3", "10.0.0.4"));
}

// The former primary is the last of a round, also if it is no member any more.
TEST(AddressOrderTest, KeepsTheRoundWhenItForgets) {
  AddressOrder order(List({1}));
  order.Learn(List({2, 3, 4}));
  for (int i = 0; i < 2; ++i) order.GoOn();
  ASSERT_EQ(order.current().HostString(), "10.0.0.3");
  order.BeginBehind();
  order.Learn(List({4}));
  EXPECT_THAT(Round(order), ElementsAre("10.0.0.4", "10.0.0.1", "10.0.0.3"));
}

TEST(AddressOrderTest, TakesMoreThanItRemembersOfThoseThatItLearns) {
  AddressOrder order(List({1}));
  for (int i = 10; i < 10 + static_cast<int>(AddressOrder::kLearnedMax); ++i) {
    order.GoOnTo(Address(i));
  }
  order.Replace(List({2, 3}));
  EXPECT_EQ(Round(order).size(), 2 + AddressOrder::kLearnedMax);
  order.GoOnTo(Address(30));
  EXPECT_EQ(order.current().HostString(), "10.0.0.30");
  order.Begin();
  EXPECT_EQ(Round(order).size(), 2 + AddressOrder::kLearnedMax);
}

// A round in vain has the names looked up, and the next attempts go where they are now.
TEST(ConnectAttemptsNamesTest, GoesWhereTheNamesAreNow) {
  for (const bool group : {false, true}) {
    const auto names = std::make_shared<NameLookup>(
        []() -> absl::StatusOr<std::vector<SocketAddress>> { return List({7}); });
    ConnectAttempts attempts({.addresses = List({1}),
                              .reconnect = true,
                              .group = group,
                              .lease_ns = kNsPerSecond,
                              .names = names});
    int64_t now_ns = 100 * kNsPerSecond;
    while (attempts.address().HostString() != "10.0.0.7") {
      attempts.OnFailed({.why = absl::UnavailableError("nobody listens")});
      attempts.ScheduleNext(now_ns);
      now_ns = attempts.next_ns();
      std::this_thread::yield();
    }
    EXPECT_NE(attempts.next_ns(), ConnectAttempts::kNever);
  }
}

// DNS is asked in another thread, which finds what it finds in its own time.
TEST(ConnectAttemptsNamesTest, MembersWithNamesAreLookedUp) {
  ConnectAttempts attempts(
      {.addresses = List({1}), .reconnect = true, .group = true, .lease_ns = 1});
  attempts.LearnMembers({"10.0.0.2:7471", "localhost:7471"}, false);
  int64_t now_ns = 100 * kNsPerSecond;
  std::set<std::string> tried;
  while (!tried.contains("127.0.0.1") && !tried.contains("::1")) {
    tried.insert(attempts.address().HostString());
    attempts.OnFailed({.why = absl::UnavailableError("nobody listens")});
    attempts.ScheduleNext(now_ns);
    now_ns = attempts.next_ns();
    std::this_thread::yield();
  }
  EXPECT_TRUE(tried.contains("10.0.0.2"));
}

}  // namespace
}  // namespace gannet
