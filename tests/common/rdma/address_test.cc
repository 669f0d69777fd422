#include "common/rdma/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gannet {
namespace {

using ::testing::HasSubstr;

TEST(AddressTest, SplitsHostAndPort) {
  const struct {
    const char* text;
    const char* host;
    uint16_t port;
  } cases[] = {
      {"10.0.0.1:80", "10.0.0.1", 80},
      {"10.0.0.1", "10.0.0.1", 7471},
      {"name.example:1", "name.example", 1},
      {"[fd00::1]:65535", "fd00::1", 65535},
      {"[fd00::1]", "fd00::1", 7471},
      {"fd00::1", "fd00::1", 7471},
      {"::", "::", 7471},
      {"localhost:0", "localhost", 0},
  };
  for (const auto& c : cases) {
    const auto parsed = ParseHostPort(c.text, 7471);
    ASSERT_TRUE(parsed.ok()) << c.text << ": " << parsed.status();
    EXPECT_EQ(parsed->host, c.host) << c.text;
    EXPECT_EQ(parsed->port, c.port) << c.text;
  }
}

TEST(AddressTest, RefusesMalformedTextAndSaysWhatToWrite) {
  for (const char* text : {"", ":7471", "host:", "host:x", "host:65536", "host:-1", "host: 1",
                           "[fd00::1", "[fd00::1]7471", "[]:1", "host:1x"}) {
    const auto parsed = ParseHostPort(text, 7471);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("10.0.0.1:7471")) << text;
  }
}

TEST(AddressTest, ANumberAloneIsNoHost) {
  for (const char* text : {"7471", "7471:80", "99999"}) {
    const auto parsed = ParseHostPort(text, 7471);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("a port, not a host")) << text;
  }
}

TEST(AddressTest, ANumberAloneIsAPortToListenOn) {
  EXPECT_EQ(ResolveListen("7472", 7471)->ToString(), "0.0.0.0:7472");
  EXPECT_EQ(ResolveListen(":7472", 7471)->ToString(), "0.0.0.0:7472");
  EXPECT_EQ(ResolveListen("0", 7471)->ToString(), "0.0.0.0:0");
  EXPECT_EQ(ResolveListen("127.0.0.1:7472", 7471)->ToString(), "127.0.0.1:7472");
  EXPECT_EQ(ResolveListen("127.0.0.1", 7471)->ToString(), "127.0.0.1:7471");
  for (const char* text : {"", ":", "65536", ":x"}) {
    EXPECT_EQ(ResolveListen(text, 7471).status().code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(AddressTest, ResolvesLiteralsAndFormatsThemBack) {
  for (const char* text : {"127.0.0.1:7471", "10.1.2.3:1", "[::1]:7471", "[fd00::a]:65535"}) {
    const auto address = Resolve(text, 1);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(AddressTest, KnowsLoopback) {
  EXPECT_TRUE(Resolve("127.3.0.1:1", 1)->is_loopback());
  EXPECT_TRUE(Resolve("[::1]:1", 1)->is_loopback());
  EXPECT_FALSE(Resolve("10.0.0.1:1", 1)->is_loopback());
}

TEST(AddressTest, UnknownNameIsUnavailableAndNamed) {
  // A label over 63 bytes is refused without asking a name server.
  const std::string name(64, 'x');
  const auto address = Resolve(name + ":1", 1);
  ASSERT_FALSE(address.ok());
  EXPECT_EQ(address.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(address.status().message()), HasSubstr(name));
}

TEST(AddressTest, LocalAddressesEndWithLoopback) {
  const auto addresses = LocalAddresses();
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  ASSERT_FALSE(addresses->empty());
  bool seen_loopback = false;
  for (const SocketAddress& address : *addresses) {
    EXPECT_TRUE(address.is_loopback() || !seen_loopback) << address.ToString();
    seen_loopback |= address.is_loopback();
  }
}

TEST(SocketAddressTest, NetworkBytesAreTheWholeAddress) {
  for (const char* text : {"10.0.0.1:7471", "[fd00::7]:1", "[::1]:65535", "0.0.0.0:0"}) {
    const SocketAddress address = Resolve(text, 0).value();
    EXPECT_EQ(SocketAddress::OfNetworkBytes(address.NetworkBytes()).ToString(), text);
  }
}

}  // namespace
}  // namespace gannet
