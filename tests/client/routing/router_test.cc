#include "client/routing/router.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/routing/endpoint.h"
#include "common/protocol/partition_map.h"

namespace gannet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

std::vector<SocketAddress> Addresses(const std::vector<std::string>& hosts) {
  std::vector<SocketAddress> addresses;
  for (const std::string& host : hosts) {
    sockaddr_storage storage{};
    auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
      storage.ss_family = AF_INET;
    } else {
      EXPECT_EQ(inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr), 1) << host;
      storage.ss_family = AF_INET6;
    }
    addresses.emplace_back(*reinterpret_cast<sockaddr*>(&storage)).set_port(7471);
  }
  return addresses;
}

TEST(EndpointTest, MayHaveANameBeforeTheAddress) {
  const auto plain = ParseEndpoint("host:7471");
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->name, "");
  EXPECT_EQ(plain->addresses.front(), "host:7471");
  const auto named = ParseEndpoint("cache-1@[fd00::1]:7471");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->name, "cache-1");
  EXPECT_EQ(named->addresses.front(), "[fd00::1]:7471");
  EXPECT_EQ(named->text, "cache-1@[fd00::1]:7471");
}

TEST(EndpointTest, ANameHasFewKindsOfCharactersAndABoundedLength) {
  for (const std::string name : {"", "two words", "a,b", "a@b", "caf\xc3\xa9"}) {
    const auto endpoint = ParseEndpoint(name + "@host:7471");
    EXPECT_TRUE(absl::IsInvalidArgument(endpoint.status())) << name;
    EXPECT_THAT(TextOf(endpoint.status()), HasSubstr("letters, digits")) << name;
  }
  EXPECT_TRUE(ParseEndpoint(std::string(32, 'n') + "@host:1").ok());
  EXPECT_FALSE(ParseEndpoint(std::string(33, 'n') + "@host:1").ok());
}

TEST(CanonicalAddressTest, IsTheLowestIpv4AddressInWhateverOrderTheyCome) {
  EXPECT_EQ(CanonicalAddress(Addresses({"::1", "127.0.0.1"})), "127.0.0.1:7471");
  EXPECT_EQ(CanonicalAddress(Addresses({"10.0.0.10", "10.0.0.9", "192.0.2.1"})), "10.0.0.9:7471");
  EXPECT_EQ(CanonicalAddress(Addresses({"192.0.2.1", "10.0.0.9", "10.0.0.10"})), "10.0.0.9:7471");
  EXPECT_EQ(CanonicalAddress(Addresses({"fd00::2", "fd00::1"})), "[fd00::1]:7471");
}

Router Make(const std::vector<std::string>& endpoints) {
  std::vector<Router::Server> servers;
  for (const std::string& text : endpoints) {
    const Endpoint endpoint = ParseEndpoint(text).value();
    servers.push_back({endpoint.text, endpoint.name, endpoint.addresses.front()});
  }
  auto router = Router::Create(std::move(servers));
  EXPECT_TRUE(router.ok()) << router.status();
  return *std::move(router);
}

std::string Owners(const Router& router) {
  std::string owners;
  for (int i = 0; i < 24; ++i) owners += router.NameOf(router.ServerOf("key" + std::to_string(i)));
  return owners;
}

// As RendezvousTest.Golden: clients of earlier versions hashed the text.
TEST(RouterTest, ServersWithoutNamesGoByTheirAddresses) {
  Router router = Make({"10.0.0.1:7471", "10.0.0.2:7471", "10.0.0.3:7471"});
  for (uint32_t server = 0; server < 3; ++server) EXPECT_FALSE(*router.OnName(server, ""));
  std::string owners;
  for (int i = 0; i < 24; ++i) {
    owners += std::to_string(router.ServerOf("key" + std::to_string(i)));
  }
  EXPECT_EQ(owners, "022111100100100020012120");
}

TEST(RouterTest, TheNameCountsAndNotTheAddress) {
  Router before = Make({"10.0.0.1:7471", "10.0.0.2:7471"});
  Router after = Make({"10.0.0.9:7471", "two@10.0.0.7:7471"});
  for (Router* router : {&before, &after}) {
    ASSERT_TRUE(router->OnName(0, "one").ok());
    ASSERT_TRUE(router->OnName(1, "two").ok());
    EXPECT_TRUE(router->status().ok()) << router->status();
  }
  EXPECT_EQ(Owners(before), Owners(after));
}

TEST(RouterTest, AServerThatWasNotReachedGoesByTheNameBeforeTheAt) {
  Router router = Make({"10.0.0.1:7471", "two@10.0.0.2:7471"});
  ASSERT_TRUE(router.OnName(0, "one").ok());
  EXPECT_TRUE(router.status().ok()) << router.status();
  const std::string owners = Owners(router);
  EXPECT_FALSE(*router.OnName(1, "two"));
  EXPECT_EQ(Owners(router), owners);
}

TEST(RouterTest, AServerThatWasNotReachedGoesByItsAddressWhereNobodyHasAName) {
  Router router = Make({"10.0.0.1:7471", "10.0.0.2:7471"});
  EXPECT_FALSE(*router.OnName(0, ""));
  EXPECT_TRUE(router.status().ok()) << router.status();
  EXPECT_FALSE(*router.OnName(1, ""));
}

TEST(RouterTest, NoKeyIsRoutedWhileANameIsUnknown) {
  Router router = Make({"10.0.0.1:7471", "10.0.0.2:7471"});
  EXPECT_TRUE(*router.OnName(0, "one"));
  EXPECT_TRUE(absl::IsUnavailable(router.status()));
  EXPECT_THAT(TextOf(router.status()), HasSubstr("write NAME@10.0.0.2:7471"));
  EXPECT_TRUE(*router.OnName(1, "two"));
  EXPECT_TRUE(router.status().ok()) << router.status();
}

TEST(RouterTest, ANameOtherThanAssumedMovesKeys) {
  Router router = Make({"10.0.0.1:7471", "10.0.0.2:7471"});
  ASSERT_TRUE(router.OnName(0, "").ok());
  const std::string owners = Owners(router);
  EXPECT_TRUE(*router.OnName(1, "two"));
  EXPECT_NE(Owners(router), owners);
  EXPECT_FALSE(*router.OnName(1, "two"));  // it came back, as it was
  EXPECT_TRUE(*router.OnName(1, "2"));     // or not
}

TEST(RouterTest, AnotherNameThanTheUserWroteIsAnError) {
  Router router = Make({"one@10.0.0.1:7471", "10.0.0.2:7471"});
  const auto other = router.OnName(0, "uno");
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status()));
  EXPECT_THAT(TextOf(other.status()),
              HasSubstr("the server at 10.0.0.1:7471 calls itself uno, not one"));
  const auto none = router.OnName(0, "");
  EXPECT_TRUE(absl::IsFailedPrecondition(none.status()));
  EXPECT_THAT(TextOf(none.status()), HasSubstr("start it with --name=one"));
  EXPECT_FALSE(*router.OnName(0, "one"));
}

TEST(RouterTest, TwoServersOfOneNameAreAnErrorThatNamesBoth) {
  const auto both = AllOf(HasSubstr("10.0.0.1:7471"), HasSubstr("10.0.0.2:7471"));
  const auto same = Router::Create(
      {{"a@10.0.0.1:7471", "a", "10.0.0.1:7471"}, {"a@10.0.0.2:7471", "a", "10.0.0.2:7471"}});
  EXPECT_TRUE(absl::IsInvalidArgument(same.status()));
  EXPECT_THAT(TextOf(same.status()), both);
  const auto twice = Router::Create(
      {{"localhost:7471", "", "127.0.0.1:7471"}, {"127.0.0.1:7471", "", "127.0.0.1:7471"}});
  EXPECT_TRUE(absl::IsInvalidArgument(twice.status()));

  Router learned = Make({"10.0.0.1:7471", "10.0.0.2:7471"});
  ASSERT_TRUE(learned.OnName(0, "a").ok());
  const auto second = learned.OnName(1, "a");
  EXPECT_TRUE(absl::IsInvalidArgument(second.status()));
  EXPECT_THAT(TextOf(second.status()), both);
  EXPECT_EQ(learned.NameOf(1), "10.0.0.2:7471") << "nothing changed";
}

TEST(RouterTest, TheHashOfTheSetIsKnownOnceAllNamesAre) {
  Router router = Make({"10.0.0.1:7471", "10.0.0.2:7471", "three@10.0.0.3:7471"});
  EXPECT_EQ(router.set_hash(), 0u);
  ASSERT_TRUE(router.OnName(0, "one").ok());
  EXPECT_EQ(router.set_hash(), 0u);
  ASSERT_TRUE(router.OnName(1, "").ok());
  EXPECT_NE(router.set_hash(), 0u);

  Router turned = Make({"three@10.0.0.3:7471", "10.0.0.2:7471", "10.9.9.9:7471"});
  ASSERT_TRUE(turned.OnName(1, "").ok());
  ASSERT_TRUE(turned.OnName(2, "one").ok());
  EXPECT_EQ(turned.set_hash(), router.set_hash());

  Router fewer = Make({"three@10.0.0.3:7471", "10.0.0.2:7471"});
  ASSERT_TRUE(fewer.OnName(1, "").ok());
  EXPECT_NE(fewer.set_hash(), router.set_hash());
  EXPECT_NE(fewer.set_hash(), 0u);
}

// Whatever address its clients use for it.
TEST(RouterTest, AListOfOneServerIsAlwaysTheSame) {
  const uint64_t hash = Make({"127.0.0.1:7471"}).set_hash();
  EXPECT_NE(hash, 0u);
  EXPECT_EQ(Make({"10.0.0.1:7471"}).set_hash(), hash);
  EXPECT_NE(Make({"a@10.0.0.1:1", "b@10.0.0.1:2"}).set_hash(), hash);
}

TEST(RouterTest, AClustersMapSaysWhichGroupHasAKey) {
  auto router = Router::Create({{"cluster:a:1", "", "10.0.0.1:1"}});
  ASSERT_TRUE(router.ok()) << router.status();
  ASSERT_FALSE(router->has_routes());
  std::vector<Router::Route> routes(kPartitions, {.server = 1});
  routes[PartitionOf("here")] = {.server = 0, .served = false, .changes = 3};
  router->SetRoutes({{"cluster:a:1", "g1", "10.0.0.1:1"}, {"cluster:b:1", "g2", "10.0.0.2:1"}},
                    routes);
  EXPECT_TRUE(router->status().ok()) << "names are known without any server";
  EXPECT_EQ(router->ServerOf("here"), 0u);
  EXPECT_EQ(router->ServerOf("there"), 1u);
  EXPECT_FALSE(router->RouteOf(PartitionOf("here")).served);
  EXPECT_EQ(router->RouteOf(PartitionOf("here")).changes, 3u);
  // What a member calls itself, or its group, moves no key.
  const uint64_t hash = router->set_hash();
  const auto moved = router->OnName(0, "group-0123456789abcdef");
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_FALSE(*moved);
  EXPECT_EQ(router->NameOf(0), "g1");
  EXPECT_EQ(router->ServerOf("here"), 0u);
  EXPECT_EQ(router->set_hash(), hash);
  EXPECT_NE(hash, 0u);
}

}  // namespace
}  // namespace gannet
