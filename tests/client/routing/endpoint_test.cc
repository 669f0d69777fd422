#include "client/routing/endpoint.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

using List = std::vector<std::string>;

TEST(EndpointTest, AServerHasOneAddressAndPerhapsAName) {
  const auto plain = ParseEndpoint("host:1").value();
  EXPECT_EQ(plain.addresses, List{"host:1"});
  EXPECT_EQ(plain.name, "");
  EXPECT_FALSE(plain.group);
  const auto named = ParseEndpoint("n@host:1").value();
  EXPECT_EQ(named.addresses, List{"host:1"});
  EXPECT_EQ(named.name, "n");
  EXPECT_FALSE(ParseEndpoint("cluster:7471").value().group) << "a host of that name";
}

TEST(EndpointTest, AGroupIsOneServerWithItsMembersAddresses) {
  const auto group = ParseEndpoint("cluster:a:1,b,,[::1]:3").value();
  EXPECT_TRUE(group.group);
  EXPECT_EQ(group.text, "cluster:a:1,b,,[::1]:3");
  EXPECT_EQ(group.name, "");
  EXPECT_EQ(group.addresses, (List{"a:1", "b", "[::1]:3"}));
}

TEST(EndpointTest, AGroupHasMembersWhichHaveNoNames) {
  EXPECT_TRUE(absl::IsInvalidArgument(ParseEndpoint("cluster:").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseEndpoint("cluster:,").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseEndpoint("cluster:n@a:1").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParseEndpoint("a@cluster:b").status()) ||
              ParseEndpoint("a@cluster:b").value().group == false);
}

List Resolved(std::string_view text) {
  const auto all = ResolveEndpoint(ParseEndpoint(text).value());
  EXPECT_TRUE(all.ok()) << all.status();
  List texts;
  if (all.ok()) {
    for (const SocketAddress& it : *all) texts.push_back(it.ToString());
  }
  return texts;
}

TEST(EndpointTest, ResolvesAllMembersOnceEach) {
  EXPECT_EQ(Resolved("cluster:10.0.0.2:1,10.0.0.1,[::1]:3,10.0.0.2:1"),
            (List{"10.0.0.2:1", "10.0.0.1:7471", "[::1]:3"}));
}

TEST(EndpointTest, AMemberThatDnsDoesNotKnowIsLeftOut) {
  EXPECT_EQ(Resolved("cluster:no-such-host.invalid:1,10.0.0.1:2"), List{"10.0.0.1:2"});
  EXPECT_TRUE(absl::IsUnavailable(
      ResolveEndpoint(ParseEndpoint("cluster:no-such-host.invalid:1").value()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ResolveEndpoint(ParseEndpoint("cluster:10.0.0.1:2,a:99999").value()).status()));
}

}  // namespace
}  // namespace gannet
