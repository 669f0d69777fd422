#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <iterator>
#include <string>

#include "softverbs/tests/cm/cm_fixture.h"
#include "softverbs/tests/devices/two_devices.h"

// Which device a connection is of. ctest runs this with 127.0.K.x for device K, and with
// SOFTVERBS_DEVICE_ADDRESSES.

namespace softverbs {
namespace {

constexpr int kDevices = 2;

class AddressesOfTwo : public TwoDevices {
 protected:
  // Returns an address of the device: its last GID, which is a loopback address.
  std::string AddressOf(int device) {
    ibv_context* context = device == 0 ? first_.get() : second_.get();
    ibv_gid_entry entries[256];
    const ssize_t count = ibv_query_gid_table(context, entries, std::size(entries), 0);
    EXPECT_GT(count, 0);
    char text[INET_ADDRSTRLEN] = "";
    if (count > 0) inet_ntop(AF_INET, entries[count - 1].gid.raw + 12, text, sizeof(text));
    return text;
  }
  static std::string NameOf(const rdma_cm_id* id) {
    return id->verbs == nullptr ? "none" : ibv_get_device_name(id->verbs->device);
  }
  static std::string Name(int device) { return "softverbs" + std::to_string(device); }

  // Returns an id with its route to that address resolved, from an address of `source` if there is
  // one.
  cm_test::Id Resolved(const std::string& to, uint16_t port, const std::string& source = "") {
    cm_test::Id id = cm_test::MakeId(client_);
    cm_test::Endpoint from(source.empty() ? "0.0.0.0" : source, 0), destination(to, port);
    EXPECT_EQ(
        rdma_resolve_addr(id.get(), source.empty() ? nullptr : from.get(), destination.get(), 1000),
        0);
    cm_test::Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(id.get(), 1000), 0);
    cm_test::Expect(client_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
  }
  // Returns the listener's end of a connection of `active`.
  cm_test::Id Connected(const cm_test::Id& active) {
    rdma_conn_param param = cm_test::Param();
    EXPECT_EQ(rdma_connect(active.get(), &param), 0);
    cm_test::Id passive(cm_test::Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
    EXPECT_EQ(rdma_accept(passive.get(), &param), 0);
    cm_test::Expect(client_, RDMA_CM_EVENT_CONNECT_RESPONSE);
    EXPECT_EQ(rdma_establish(active.get()), 0);
    cm_test::Expect(server_, RDMA_CM_EVENT_ESTABLISHED);
    return passive;
  }

  cm_test::Channel server_ = cm_test::MakeChannel();
  cm_test::Channel client_ = cm_test::MakeChannel();
};

TEST_F(AddressesOfTwo, AWildcardListensOnAllDevices) {
  const cm_test::Id listener = cm_test::Listen(server_, "0.0.0.0");
  EXPECT_EQ(NameOf(listener.get()), "none");
  for (int device = 0; device < kDevices; ++device) {
    const cm_test::Id active = Resolved(AddressOf(device), cm_test::PortOf(listener));
    const cm_test::Id passive = Connected(active);
    EXPECT_EQ(NameOf(passive.get()), Name(device));
    EXPECT_EQ(NameOf(active.get()), Name(device)) << "without a source, the destination's";
  }
}

TEST_F(AddressesOfTwo, TheSourceSaysWhichDeviceConnects) {
  const cm_test::Id listener = cm_test::Listen(server_, "0.0.0.0");
  for (int to = 0; to < kDevices; ++to) {
    for (int from = 0; from < kDevices; ++from) {
      const cm_test::Id active =
          Resolved(AddressOf(to), cm_test::PortOf(listener), AddressOf(from));
      const cm_test::Id passive = Connected(active);
      EXPECT_EQ(NameOf(active.get()), Name(from));
      EXPECT_EQ(NameOf(passive.get()), Name(to));
    }
  }
}

TEST_F(AddressesOfTwo, ABoundIdStaysOnItsDevice) {
  const cm_test::Id listener = cm_test::Listen(server_, "0.0.0.0");
  for (int from = 0; from < kDevices; ++from) {
    const cm_test::Id active = cm_test::MakeId(client_);
    ASSERT_EQ(rdma_bind_addr(active.get(), cm_test::Endpoint(AddressOf(from), 0).get()), 0);
    EXPECT_EQ(NameOf(active.get()), Name(from));
    cm_test::Endpoint to(AddressOf(1 - from), cm_test::PortOf(listener));
    ASSERT_EQ(rdma_resolve_addr(active.get(), nullptr, to.get(), 1000), 0);
    cm_test::Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(NameOf(active.get()), Name(from));
  }
}

TEST_F(AddressesOfTwo, AListenerOfOneDeviceIsNotReachedThroughTheOther) {
  for (int device = 0; device < kDevices; ++device) {
    const cm_test::Id listener = cm_test::Listen(server_, AddressOf(device));
    const cm_test::Id active = Resolved(AddressOf(1 - device), cm_test::PortOf(listener));
    rdma_conn_param param = cm_test::Param();
    ASSERT_EQ(rdma_connect(active.get(), &param), 0);
    EXPECT_EQ(cm_test::Expect(client_, RDMA_CM_EVENT_REJECTED)->status, 8);
  }
}

TEST_F(AddressesOfTwo, EachDeviceHasAListenerAtAPort) {
  const cm_test::Id first = cm_test::Listen(server_, AddressOf(0));
  const cm_test::Id second = cm_test::MakeId(server_);
  ASSERT_EQ(
      rdma_bind_addr(second.get(), cm_test::Endpoint(AddressOf(1), cm_test::PortOf(first)).get()),
      0);
  ASSERT_EQ(rdma_listen(second.get(), 0), 0);
  for (int device = 0; device < kDevices; ++device) {
    const cm_test::Id passive = Connected(Resolved(AddressOf(device), cm_test::PortOf(first)));
    EXPECT_EQ(NameOf(passive.get()), Name(device));
  }
}

}  // namespace
}  // namespace softverbs
