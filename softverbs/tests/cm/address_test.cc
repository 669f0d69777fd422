#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>

#include "softverbs/tests/cm/cm_fixture.h"

namespace softverbs::cm_test {
namespace {

class AddressTest : public ::testing::Test {
 protected:
  // Returns rdma_bind_addr's errno, or 0.
  static int Bind(const Id& id, const std::string& host, uint16_t port) {
    errno = 0;
    return rdma_bind_addr(id.get(), Endpoint(host, port).get()) == 0 ? 0 : errno;
  }
  // Returns the status with which a connection to host:port is refused, or 0 if it is not refused.
  int Connect(const std::string& host, uint16_t port) {
    const Id active = Resolve(client_, port, host);
    rdma_conn_param param = Param();
    EXPECT_EQ(rdma_connect(active.get(), &param), 0);
    pollfd fds[2] = {{.fd = client_->fd, .events = POLLIN, .revents = 0},
                     {.fd = server_->fd, .events = POLLIN, .revents = 0}};
    EXPECT_EQ(poll(fds, 2, kPatienceMs), 1);
    if (fds[0].revents != 0) return Expect(client_, RDMA_CM_EVENT_REJECTED)->status;
    const Id passive(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
    return 0;
  }

  Channel server_ = MakeChannel();
  Channel client_ = MakeChannel();
};

// Returns an IPv4 address of this host other than the loopback's, or an empty text.
std::string OtherAddress() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  std::string found;
  for (const ifaddrs* i = list; i != nullptr && found.empty(); i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    if ((i->ifa_flags & IFF_LOOPBACK) != 0) continue;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(i->ifa_addr)->sin_addr, text, sizeof(text));
    found = text;
  }
  freeifaddrs(list);
  return found;
}

TEST_F(AddressTest, PortZeroChoosesAPort) {
  const Id first = Listen(server_);
  const Id second = Listen(server_);
  EXPECT_NE(PortOf(first), 0);
  EXPECT_NE(PortOf(first), PortOf(second));
}

TEST_F(AddressTest, ListenWithoutBindListensEverywhere) {
  const Id id = MakeId(server_);
  ASSERT_EQ(rdma_listen(id.get(), 0), 0);
  ASSERT_NE(PortOf(id), 0);
  EXPECT_EQ(id->verbs, nullptr);  // bound to no device: its connections will be
  EXPECT_EQ(Connect("127.0.0.1", PortOf(id)), 0);
}

TEST_F(AddressTest, SpecificAddressBindsToTheDevice) {
  const Id id = Listen(server_);
  EXPECT_NE(id->verbs, nullptr);
}

TEST_F(AddressTest, TakenPortIsInUse) {
  const Id taken = Listen(server_);
  const Id id = MakeId(server_);
  EXPECT_EQ(Bind(id, "127.0.0.1", PortOf(taken)), EADDRINUSE);
  EXPECT_EQ(Bind(id, "127.0.0.1", 0), 0);  // the id is still good
}

TEST_F(AddressTest, DestroyingFreesThePort) {
  Id first = Listen(server_);
  const uint16_t port = PortOf(first);
  for (int i = 0; i < 50; i++) {
    first.reset();
    first = MakeId(server_);
    ASSERT_EQ(Bind(first, "127.0.0.1", port), 0);
    ASSERT_EQ(rdma_listen(first.get(), 0), 0);
  }
}

TEST_F(AddressTest, PortOfALivingConnectionCanBeListenedOnAgain) {
  Id listener = Listen(server_);
  const uint16_t port = PortOf(listener);
  const Id active = Resolve(client_, port);
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  const Id passive(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  listener.reset();
  const Id again = MakeId(server_);
  EXPECT_EQ(Bind(again, "0.0.0.0", port), 0);
}

TEST_F(AddressTest, WildcardOverlapsSpecific) {
  const Id specific = Listen(server_, "127.0.0.1");
  EXPECT_EQ(Bind(MakeId(server_), "0.0.0.0", PortOf(specific)), EADDRINUSE);
  EXPECT_EQ(Bind(MakeId(server_), "::", PortOf(specific)), EADDRINUSE);  // both families
  const Id wildcard = Listen(server_, "0.0.0.0");
  EXPECT_EQ(Bind(MakeId(server_), "127.0.0.1", PortOf(wildcard)), EADDRINUSE);
}

TEST_F(AddressTest, DifferentAddressesShareAPort) {
  const Id one = Listen(server_, "127.0.0.1");
  const Id two = MakeId(server_);
  EXPECT_EQ(Bind(two, "127.0.0.2", PortOf(one)), 0);
}

TEST_F(AddressTest, ListenerOnOneAddressIsNotReachedThroughAnother) {
  const Id id = Listen(server_, "127.0.0.2");
  EXPECT_EQ(Connect("127.0.0.2", PortOf(id)), 0);
  EXPECT_EQ(Connect("127.0.0.1", PortOf(id)), 8);
}

TEST_F(AddressTest, WildcardListenerIsReachedThroughEveryAddress) {
  const Id id = Listen(server_, "0.0.0.0");
  EXPECT_EQ(Connect("127.0.0.1", PortOf(id)), 0);
  EXPECT_EQ(Connect("127.0.0.9", PortOf(id)), 0);
  const std::string other = OtherAddress();
  if (other.empty()) GTEST_SKIP() << "this host has no address but the loopback's";
  EXPECT_EQ(Connect(other, PortOf(id)), 0) << other;
}

TEST_F(AddressTest, ConnectingToTheWildcardMeansThisHost) {
  const Id id = Listen(server_);
  EXPECT_EQ(Connect("0.0.0.0", PortOf(id)), 0);
}

TEST_F(AddressTest, Ipv6) {
  const Id id = Listen(server_, "::1");
  const Id active = Resolve(client_, PortOf(id), "::1");
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  const Id passive(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  EXPECT_EQ(rdma_get_local_addr(passive.get())->sa_family, AF_INET6);
  EXPECT_EQ(ntohs(rdma_get_src_port(passive.get())), PortOf(id));
  EXPECT_EQ(rdma_get_dst_port(passive.get()), rdma_get_src_port(active.get()));
}

TEST_F(AddressTest, Ipv6WildcardTakesIpv4Too) {
  const Id id = Listen(server_, "::");
  EXPECT_EQ(Connect("::1", PortOf(id)), 0);
  EXPECT_EQ(Connect("127.0.0.1", PortOf(id)), 0);
}

TEST_F(AddressTest, FamilyOnlyOptionKeepsIpv4Out) {
  const Id id = MakeId(server_);
  int on = 1;
  ASSERT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), 0);
  ASSERT_EQ(Bind(id, "::", 0), 0);
  ASSERT_EQ(rdma_listen(id.get(), 0), 0);
  EXPECT_EQ(Connect("::1", PortOf(id)), 0);
  EXPECT_EQ(Connect("127.0.0.1", PortOf(id)), 8);
  // The IPv4 half of the port is therefore free.
  const Id other = MakeId(server_);
  EXPECT_EQ(Bind(other, "0.0.0.0", PortOf(id)), 0);
}

TEST_F(AddressTest, ReuseAddressSharesAPortUntilSomebodyListens) {
  Id ids[3] = {MakeId(server_), MakeId(server_), MakeId(server_)};
  int on = 1;
  for (const Id& id : ids) {
    ASSERT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)),
              0);
  }
  uint16_t port;
  {
    const Id chosen = Listen(server_);
    port = PortOf(chosen);
  }
  ASSERT_EQ(Bind(ids[0], "127.0.0.1", port), 0);
  ASSERT_EQ(Bind(ids[1], "127.0.0.1", port), 0);
  ASSERT_EQ(rdma_listen(ids[0].get(), 0), 0);
  EXPECT_EQ(rdma_listen(ids[1].get(), 0), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  EXPECT_EQ(Bind(ids[2], "127.0.0.1", port), EADDRINUSE);
}

TEST_F(AddressTest, AddressesOfOtherHosts) {
  const Id bind = MakeId(server_);
  EXPECT_EQ(Bind(bind, "192.0.2.1", 0), EADDRNOTAVAIL);
  const Id id = MakeId(client_);
  ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, Endpoint("192.0.2.1", 7471).get(), 1000), 0);
  EXPECT_TRUE(Readable(client_));  // at once
  const Event error = Expect(client_, RDMA_CM_EVENT_ADDR_ERROR);
  EXPECT_EQ(error->status, -EHOSTUNREACH);
  // The id can try another address.
  ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, Endpoint("127.0.0.1", 7471).get(), 1000), 0);
  Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
}

TEST_F(AddressTest, SourceAddressIsKept) {
  const Id listener = Listen(server_);
  const Id id = MakeId(client_);
  ASSERT_EQ(rdma_resolve_addr(id.get(), Endpoint("127.0.0.5", 0).get(),
                              Endpoint("127.0.0.1", PortOf(listener)).get(), 1000),
            0);
  Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
  ASSERT_EQ(rdma_resolve_route(id.get(), 1000), 0);
  Expect(client_, RDMA_CM_EVENT_ROUTE_RESOLVED);
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_connect(id.get(), &param), 0);
  const Id passive(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  const auto* peer = reinterpret_cast<sockaddr_in*>(rdma_get_peer_addr(passive.get()));
  EXPECT_EQ(ntohl(peer->sin_addr.s_addr), 0x7f000005u);
}

TEST_F(AddressTest, BadArguments) {
  const Id id = MakeId(client_);
  sockaddr unknown = {};
  unknown.sa_family = AF_UNIX;
  EXPECT_EQ(rdma_bind_addr(id.get(), &unknown), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_bind_addr(id.get(), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(
      rdma_resolve_addr(id.get(), Endpoint("::1", 0).get(), Endpoint("127.0.0.1", 1).get(), 1000),
      -1);
  EXPECT_EQ(errno, EINVAL);
  uint8_t tos = 1;
  EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)), 0);
  EXPECT_EQ(rdma_set_option(id.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 4), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_set_option(id.get(), 9, 9, &tos, sizeof(tos)), -1);
  EXPECT_EQ(errno, ENOSYS);
}

TEST_F(AddressTest, IpoibIsRefusedCleanly) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(client_.get(), &id, nullptr, RDMA_PS_IPOIB), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST(AddressInfoTest, PassiveWildcard) {
  rdma_addrinfo hints = {};
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* info = nullptr;
  ASSERT_EQ(rdma_getaddrinfo(nullptr, "7471", &hints, &info), 0);
  EXPECT_EQ(info->ai_flags, RAI_PASSIVE);
  EXPECT_EQ(info->ai_qp_type, IBV_QPT_RC);
  EXPECT_EQ(info->ai_port_space, RDMA_PS_TCP);
  EXPECT_NE(info->ai_src_addr, nullptr);
  EXPECT_EQ(info->ai_dst_addr, nullptr);
  rdma_freeaddrinfo(info);
}

TEST(AddressInfoTest, NumericHost) {
  rdma_addrinfo hints = {};
  hints.ai_flags = RAI_NUMERICHOST;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* info = nullptr;
  ASSERT_EQ(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &info), 0);
  ASSERT_NE(info->ai_dst_addr, nullptr);
  EXPECT_EQ(ntohs(reinterpret_cast<sockaddr_in*>(info->ai_dst_addr)->sin_port), 7471);
  rdma_freeaddrinfo(info);
  EXPECT_NE(rdma_getaddrinfo("not-an-address", "7471", &hints, &info), 0);
}

TEST(AddressInfoTest, NeedsSomethingToLookUp) {
  rdma_addrinfo* info = nullptr;
  EXPECT_EQ(rdma_getaddrinfo(nullptr, nullptr, nullptr, &info), -1);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace softverbs::cm_test
