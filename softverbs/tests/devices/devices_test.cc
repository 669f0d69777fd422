#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <string>
#include <utility>
#include <vector>

#include "softverbs/control.h"
#include "softverbs/tests/cm/cm_fixture.h"
#include "softverbs/tests/devices/two_devices.h"
#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

std::vector<std::string> AddressesOf(ibv_context* context) {
  std::vector<ibv_gid_entry> entries(256);
  const ssize_t count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
  std::vector<std::string> addresses;
  for (ssize_t at = 0; at < count; ++at) {
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, entries[static_cast<size_t>(at)].gid.raw + 12, text, sizeof(text));
    addresses.emplace_back(text);
  }
  return addresses;
}

using DevicesTest = TwoDevices;

TEST_F(DevicesTest, EachHasItsNameAndGuid) {
  EXPECT_STREQ(ibv_get_device_name(first_->device), "softverbs0");
  EXPECT_STREQ(ibv_get_device_name(second_->device), "softverbs1");
  EXPECT_NE(ibv_get_device_guid(first_->device), ibv_get_device_guid(second_->device));
  ibv_device_attr first{}, second{};
  ASSERT_EQ(ibv_query_device(first_.get(), &first), 0);
  ASSERT_EQ(ibv_query_device(second_.get(), &second), 0);
  EXPECT_EQ(first.node_guid, ibv_get_device_guid(first_->device));
  EXPECT_EQ(second.node_guid, ibv_get_device_guid(second_->device));
  EXPECT_EQ(first.sys_image_guid, second.sys_image_guid);
}

TEST_F(DevicesTest, AnAddressIsAGidOfOneDevice) {
  EXPECT_EQ(AddressesOf(first_.get()).back(), "127.0.0.1");
  EXPECT_EQ(AddressesOf(second_.get()), std::vector<std::string>{"127.0.1.1"});
}

// Objects are in tests/abi/other_context_test.cc.
TEST_F(DevicesTest, AnotherDevicesGidIsNoSource) {
  Side client(second_.get(), {});
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.dest_qp_num = client.qp->qp_num;
  attr.path_mtu = IBV_MTU_1024;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = client.address().gid;
  const auto of_first = AddressesOf(first_.get());
  ASSERT_GT(of_first.size(), 1u) << "both tables have one address: no index is only the first's";
  attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(of_first.size() - 1);
  EXPECT_EQ(ibv_modify_qp(client.qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            EINVAL);
}

TEST_F(DevicesTest, BothCarry) {
  Side client(second_.get(), {}), server(second_.get(), {});
  ConnectEach(client, server);
  server.Fill(0, 4096, 7);
  ASSERT_EQ(client.Read(1, 0, 4096, server.address(), 0), 0);
  EXPECT_EQ(client.Next().status, IBV_WC_SUCCESS);
  EXPECT_TRUE(client.Matches(0, 4096, 7));
}

TEST_F(DevicesTest, ReadsAreCountedByDevice) {
  Side client(second_.get(), {}), server(second_.get(), {});
  ConnectEach(client, server);
  const uint64_t before = softverbs_reads_posted(1), of_first = softverbs_reads_posted(0);
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(client.Read(id, 0, 8, server.address(), 0), 0);
    EXPECT_EQ(client.Next().status, IBV_WC_SUCCESS);
  }
  client.Fill(0, 8, 1);
  ASSERT_EQ(client.Write(4, 0, 8, server.address(), 0), 0);
  EXPECT_EQ(client.Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(softverbs_reads_posted(1), before + 3);
  EXPECT_EQ(softverbs_reads_posted(0), of_first);
  EXPECT_EQ(softverbs_reads_posted(8), 0u);
}

// As on hardware, where each device has a table of its own.
TEST_F(DevicesTest, AnotherDevicesKeyIsRefused) {
  Side client(second_.get(), {}), server(second_.get(), {}), other(first_.get(), {});
  ConnectEach(client, server);
  Address wrong = other.address();
  ASSERT_EQ(client.Read(1, 0, 8, wrong, 0), 0);
  EXPECT_EQ(client.Next().status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(DevicesTest, AnotherDevicesLocalKeyIsRefused) {
  Side client(second_.get(), {}), server(second_.get(), {}), other(first_.get(), {});
  ConnectEach(client, server);
  ibv_send_wr wr{};
  wr.wr_id = 1;
  wr.opcode = IBV_WR_RDMA_READ;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {server.address().memory, server.address().rkey};
  ASSERT_EQ(client.Post(wr, other.Sge(0, 8)), 0);
  EXPECT_EQ(client.Next().status, IBV_WC_LOC_PROT_ERR);
}

TEST_F(DevicesTest, AnotherDevicesKeyReceivesNothing) {
  Side client(second_.get(), {}), server(second_.get(), {}), other(first_.get(), {});
  ConnectEach(client, server);
  other.Fill(0, 8, 1);
  ibv_sge sge = other.Sge(0, 8);
  ibv_recv_wr receive{}, *bad = nullptr;
  receive.sg_list = &sge;
  receive.num_sge = 1;
  ASSERT_EQ(ibv_post_recv(server.qp.get(), &receive, &bad), 0);
  client.Fill(0, 8, 2);
  ASSERT_EQ(client.PostSend(1, 0, 8), 0);
  EXPECT_EQ(server.Next().status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(client.Next().status, IBV_WC_REM_OP_ERR);
  EXPECT_TRUE(other.Matches(0, 8, 1));
}

TEST_F(DevicesTest, AWindowIsNotBoundToAnotherDevicesRegion) {
  Side client(second_.get(), {}), server(second_.get(), {});
  ConnectEach(client, server);
  const TestMemory memory(MemoryKind::kPrivate, 4096);
  for (const bool is_own : {true, false}) {
    const Owned<ibv_pd> pd(ibv_alloc_pd(first_.get()));
    const Owned<ibv_mr> region(ibv_reg_mr(is_own ? client.pd : pd.get(), memory.data(),
                                          memory.size(), kAllAccess | IBV_ACCESS_MW_BIND));
    ibv_mw* window = ibv_alloc_mw(client.pd, IBV_MW_TYPE_2);
    ASSERT_NE(window, nullptr);
    ibv_send_wr wr{}, *bad = nullptr;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.bind_mw.mw = window;
    wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
    wr.bind_mw.bind_info = {region.get(), memory.address(), 8, IBV_ACCESS_REMOTE_READ};
    ASSERT_EQ(ibv_post_send(client.qp.get(), &wr, &bad), 0);
    EXPECT_EQ(client.Next().status, is_own ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR);
    EXPECT_EQ(ibv_dealloc_mw(window), 0);
  }
}

TEST_F(DevicesTest, RdmaCmFindsTheDeviceByTheAddress) {
  const cm_test::Channel channel = cm_test::MakeChannel();
  for (const auto& [address, name] :
       {std::pair<const char*, const char*>{"127.0.0.1", "softverbs0"},
        {"127.0.0.7", "softverbs0"},
        {"127.0.1.1", "softverbs1"},
        {"127.0.1.7", "softverbs1"}}) {
    cm_test::Endpoint at(address, 0);
    const cm_test::Id bound = cm_test::MakeId(channel);
    ASSERT_EQ(rdma_bind_addr(bound.get(), at.get()), 0);
    EXPECT_STREQ(ibv_get_device_name(bound->verbs->device), name) << address;
    const cm_test::Id active = cm_test::Resolve(channel, 1, address);
    EXPECT_STREQ(ibv_get_device_name(active->verbs->device), name) << address;
  }
}

TEST_F(DevicesTest, RdmaCmListsThem) {
  int count = 0;
  ibv_context** list = rdma_get_devices(&count);
  ASSERT_NE(list, nullptr);
  ASSERT_EQ(count, 2);
  EXPECT_STREQ(ibv_get_device_name(list[1]->device), "softverbs1");
  EXPECT_EQ(list[2], nullptr);
  rdma_free_devices(list);
}

}  // namespace
}  // namespace softverbs
