#include "common/rdma/name_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "common/base/clock.h"
#include "tests/support/fake_hosts.h"

namespace gannet {
namespace {

using test_support::SetFakeHost;
using ::testing::ElementsAre;
using Addresses = std::vector<SocketAddress>;

std::vector<std::string> Texts(const Addresses& addresses) {
  std::vector<std::string> texts;
  for (const SocketAddress& it : addresses) texts.push_back(it.ToString());
  return texts;
}

Addresses Await(NameLookup& names) {
  while (true) {
    if (auto found = names.Take()) return *std::move(found);
    std::this_thread::yield();
  }
}

TEST(NameLookupTest, ANameHasAllItsAddresses) {
  SetFakeHost("store.example", {"10.0.0.2", "fd00::1", "10.0.0.1"});
  const auto all = ResolveAll("store.example:7000", 7471);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(Texts(*all), ElementsAre("10.0.0.2:7000", "[fd00::1]:7000", "10.0.0.1:7000"));
}

TEST(NameLookupTest, GivesWhatTheNamesAreNowOnce) {
  SetFakeHost("store.example", {"10.0.0.1"});
  NameLookup names([] { return ResolveAll("store.example", 7471); });
  EXPECT_FALSE(names.Take().has_value()) << "nobody asked";
  SetFakeHost("store.example", {"10.0.0.9", "10.0.0.8"});
  names.Ask();
  EXPECT_THAT(Texts(Await(names)), ElementsAre("10.0.0.9:7471", "10.0.0.8:7471"));
  EXPECT_FALSE(names.Take().has_value());
}

TEST(NameLookupTest, AsksOnceInASecond) {
  const auto asked = std::make_shared<std::atomic<int>>(0);
  NameLookup names([asked]() -> absl::StatusOr<Addresses> {
    ++*asked;
    return Addresses{*NumericAddress("10.0.0.1", 7471)};
  });
  const int64_t began_ns = MonotonicNs();
  names.Ask();
  Await(names);
  for (int i = 0; i < 1000; ++i) names.Ask();
  EXPECT_LE(*asked, 1 + (MonotonicNs() - began_ns) / kNsPerSecond);
}

// DNS answers when nobody waits for it any more.
TEST(NameLookupTest, MayBeDestroyedWhileALookupIsUnderWay) {
  std::atomic<bool> begun = false;
  std::atomic<bool> go = false;
  std::atomic<bool> ended = false;
  {
    NameLookup names([&]() -> absl::StatusOr<Addresses> {
      begun = true;
      while (!go) std::this_thread::yield();
      ended = true;
      return absl::UnavailableError("");
    });
    names.Ask();
    while (!begun) std::this_thread::yield();
  }
  go = true;
  while (!ended) std::this_thread::yield();
}

}  // namespace
}  // namespace gannet
