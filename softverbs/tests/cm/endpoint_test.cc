#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "softverbs/tests/cm/cm_fixture.h"

namespace softverbs::cm_test {
namespace {

struct EndpointDeleter {
  void operator()(rdma_cm_id* id) const { rdma_destroy_ep(id); }
  void operator()(rdma_addrinfo* info) const { rdma_freeaddrinfo(info); }
  void operator()(ibv_mr* mr) const { EXPECT_EQ(rdma_dereg_mr(mr), 0); }
};
using Ep = std::unique_ptr<rdma_cm_id, EndpointDeleter>;
using Info = std::unique_ptr<rdma_addrinfo, EndpointDeleter>;
using Region = std::unique_ptr<ibv_mr, EndpointDeleter>;

Info LookUp(const char* port, int flags) {
  rdma_addrinfo hints = {};
  hints.ai_flags = flags | RAI_NUMERICHOST;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* info = nullptr;
  EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", port, &hints, &info), 0);
  return Info(info);
}

Ep MakeEndpoint(const Info& info, ibv_qp_init_attr* attr) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_ep(&id, info.get(), nullptr, attr), 0) << strerror(errno);
  return Ep(id);
}

// Every call here waits for its own completion, so the client needs a thread.
class EndpointTest : public ::testing::Test {
 protected:
  EndpointTest() {
    ibv_qp_init_attr attr = QpAttributes();
    listener_ = MakeEndpoint(LookUp("0", RAI_PASSIVE), &attr);
    EXPECT_EQ(rdma_listen(listener_.get(), 0), 0);
    port_ = std::to_string(ntohs(rdma_get_src_port(listener_.get())));
  }

  Ep GetRequest() {
    rdma_cm_id* id = nullptr;
    EXPECT_EQ(rdma_get_request(listener_.get(), &id), 0) << strerror(errno);
    return Ep(id);
  }

  Ep listener_;
  std::string port_;
};

TEST_F(EndpointTest, CarriesAMessageEachWay) {
  std::thread client([&] {
    ibv_qp_init_attr attr = QpAttributes();
    const Ep id = MakeEndpoint(LookUp(port_.c_str(), 0), &attr);
    char out[16] = "ping", in[16] = "";
    const Region out_region(rdma_reg_msgs(id.get(), out, sizeof(out)));
    const Region in_region(rdma_reg_msgs(id.get(), in, sizeof(in)));
    ASSERT_EQ(rdma_post_recv(id.get(), nullptr, in, sizeof(in), in_region.get()), 0);
    ASSERT_EQ(rdma_connect(id.get(), nullptr), 0) << strerror(errno);
    ASSERT_EQ(rdma_post_send(id.get(), nullptr, out, sizeof(out), out_region.get(), 0), 0);
    ibv_wc wc = {};
    ASSERT_EQ(rdma_get_send_comp(id.get(), &wc), 1);
    ASSERT_EQ(rdma_get_recv_comp(id.get(), &wc), 1);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_STREQ(in, "pong");
    EXPECT_EQ(rdma_disconnect(id.get()), 0);
  });
  const Ep id = GetRequest();
  ASSERT_NE(id->qp, nullptr);
  EXPECT_NE(id->send_cq_channel, nullptr);
  EXPECT_NE(id->recv_cq_channel, nullptr);
  EXPECT_NE(id->channel, listener_->channel);  // synchronous ids have a channel each
  char out[16] = "pong", in[16] = "";
  const Region out_region(rdma_reg_msgs(id.get(), out, sizeof(out)));
  const Region in_region(rdma_reg_msgs(id.get(), in, sizeof(in)));
  ASSERT_EQ(rdma_post_recv(id.get(), nullptr, in, sizeof(in), in_region.get()), 0);
  ASSERT_EQ(rdma_accept(id.get(), nullptr), 0) << strerror(errno);
  ibv_wc wc = {};
  ASSERT_EQ(rdma_get_recv_comp(id.get(), &wc), 1);
  EXPECT_STREQ(in, "ping");
  ASSERT_EQ(rdma_post_send(id.get(), nullptr, out, sizeof(out), out_region.get(), 0), 0);
  ASSERT_EQ(rdma_get_send_comp(id.get(), &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(rdma_disconnect(id.get()), 0);
  client.join();
}

TEST_F(EndpointTest, RejectionIsConnectionRefused) {
  std::thread client([&] {
    ibv_qp_init_attr attr = QpAttributes();
    const Ep id = MakeEndpoint(LookUp(port_.c_str(), 0), &attr);
    EXPECT_EQ(rdma_connect(id.get(), nullptr), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
    ASSERT_NE(id->event, nullptr);
    EXPECT_EQ(id->event->event, RDMA_CM_EVENT_REJECTED);
  });
  const Ep id = GetRequest();
  EXPECT_EQ(rdma_reject(id.get(), nullptr, 0), 0);
  client.join();
}

TEST_F(EndpointTest, NobodyListeningIsConnectionRefused) {
  listener_.reset();
  ibv_qp_init_attr attr = QpAttributes();
  const Ep id = MakeEndpoint(LookUp(port_.c_str(), 0), &attr);
  EXPECT_EQ(rdma_connect(id.get(), nullptr), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST_F(EndpointTest, AnotherHostIsUnreachable) {
  rdma_addrinfo hints = {};
  hints.ai_flags = RAI_NUMERICHOST;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* info = nullptr;
  ASSERT_EQ(rdma_getaddrinfo("192.0.2.1", "7471", &hints, &info), 0);
  const Info owner(info);
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_ep(&id, info, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EHOSTUNREACH);
}

TEST_F(EndpointTest, ConnectDataOfTheAddressInfoComesFirst) {
  std::thread client([&] {
    const Info info = LookUp(port_.c_str(), 0);
    info->ai_connect = strdup("from info, ");
    info->ai_connect_len = strlen("from info, ");
    ibv_qp_init_attr attr = QpAttributes();
    const Ep id = MakeEndpoint(info, &attr);
    rdma_conn_param param = Param("from param");
    EXPECT_EQ(rdma_connect(id.get(), &param), -1);
    EXPECT_EQ(errno, ECONNREFUSED);
  });
  const Ep id = GetRequest();
  EXPECT_STREQ(static_cast<const char*>(id->event->param.conn.private_data),
               "from info, from param");
  EXPECT_EQ(rdma_reject(id.get(), nullptr, 0), 0);
  client.join();
}

TEST_F(EndpointTest, SynchronousIdBecomesAsynchronousByMigration) {
  const Channel channel = MakeChannel();
  rdma_cm_id* handle = nullptr;
  ASSERT_EQ(rdma_create_id(nullptr, &handle, nullptr, RDMA_PS_TCP), 0);
  const Id id(handle);
  EXPECT_EQ(rdma_migrate_id(id.get(), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  ASSERT_EQ(rdma_migrate_id(id.get(), channel.get()), 0);
  ASSERT_EQ(rdma_resolve_addr(id.get(), nullptr, Endpoint("127.0.0.1", 7471).get(), 1000), 0);
  Expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
}

}  // namespace
}  // namespace softverbs::cm_test
