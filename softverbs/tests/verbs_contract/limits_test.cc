// A device can do what it reports: inline data, outstanding READs, sizes of queues.
#include <algorithm>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

ibv_qp_cap CapabilitiesOf(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
  return init.cap;
}

class InlineTest : public ::testing::Test {
 protected:
  // Sends `size` unregistered bytes inline. Returns what the post returned.
  int SendInline(uint32_t size) {
    bytes_.assign(size, 0x11);
    ibv_sge sge{reinterpret_cast<uint64_t>(bytes_.data()), size, 0};
    ibv_send_wr wr = Send(&sge);
    wr.send_flags |= IBV_SEND_INLINE;
    const int error = Post(pair_.client(), wr);
    std::ranges::fill(bytes_, 0xee);  // ibv_post_send(3): at once after the call
    return error;
  }

  Pair pair_;
  std::vector<uint8_t> bytes_;
};

TEST_F(InlineTest, UpToTheLimitArrivesThoughTheBufferIsReusedAtOnce) {
  const uint32_t limit = CapabilitiesOf(pair_.client().qp()).max_inline_data;
  ASSERT_GE(limit, 64u) << "it was asked for 64 bytes";
  for (const uint32_t size : {1u, 48u, limit}) {
    Buffer& target = *pair_.server().buffer;
    target.Fill(0);
    ASSERT_EQ(PostReceive(pair_.server(), target.Sge(0, 4096)), 0);
    ASSERT_EQ(SendInline(size), 0);
    const ibv_wc wc = NextCompletion(pair_.server().cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.byte_len, size);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(target.data()[i], 0x11) << i;
    EXPECT_EQ(target.data()[size], 0);
    EXPECT_EQ(NextCompletion(pair_.client().cq).status, IBV_WC_SUCCESS);
  }
}

TEST_F(InlineTest, OverTheLimitIsRefusedAtThePost) {
  const uint32_t limit = CapabilitiesOf(pair_.client().qp()).max_inline_data;
  EXPECT_NE(SendInline(limit + 1), 0);
  EXPECT_TRUE(NoCompletion(pair_.client().cq));
  // The queue pair still works.
  ibv_sge sge = pair_.client().buffer->Sge(0, 8);
  Buffer& target = *pair_.server().buffer;
  EXPECT_EQ(Do(pair_.client(), Read(&sge, target.address(), target.rkey())).status, IBV_WC_SUCCESS);
}

class DepthTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kReads = 60;

  // Posts more READs than may be outstanding. The device must hold them back, lose none, and
  // complete them in order.
  void ExpectAllComplete(Pair& pair) {
    for (size_t i = 0; i < kReads; ++i) {
      pair.server().buffer->data()[i * 8] = static_cast<uint8_t>(i);
    }
    std::vector<ibv_sge> sges(kReads);
    for (uint32_t i = 0; i < kReads; ++i) {
      sges[i] = pair.client().buffer->Sge(i * 8, 8);
      const uint64_t from = pair.server().buffer->address() + i * 8;
      ASSERT_EQ(Post(pair.client(), Read(&sges[i], from, pair.server().buffer->rkey(), i)), 0);
    }
    for (uint32_t i = 0; i < kReads; ++i) {
      const ibv_wc wc = NextCompletion(pair.client().cq);
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc.wr_id, i);
      ASSERT_EQ(pair.client().buffer->data()[i * 8], i);
    }
  }

  ibv_qp_attr DepthsOf(ibv_qp* qp) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC, &init),
              0);
    return attr;
  }
};

TEST_F(DepthTest, OneReadAtATime) {
  Pair pair({.responder_resources = 1, .initiator_depth = 1});
  ExpectAllComplete(pair);
}

TEST_F(DepthTest, AsManyAsTheDeviceHas) {
  const auto depth = static_cast<uint8_t>(
      std::min({TheDevice().attr.max_qp_rd_atom, TheDevice().attr.max_qp_init_rd_atom, 255}));
  Pair pair({.responder_resources = depth, .initiator_depth = depth});
  ExpectAllComplete(pair);
}

// rdma_accept(3): what the passive side accepts with is what both get: the resources of one are the
// depth of the other.
TEST_F(DepthTest, BothEndsGetWhatWasAcceptedWith) {
  Pair pair({.responder_resources = 4, .initiator_depth = 2});  // some devices round up to these
  const ibv_qp_attr client = DepthsOf(pair.client().qp());
  const ibv_qp_attr server = DepthsOf(pair.server().qp());
  if (!TheDevice().is_iwarp()) {  // whose depths are not negotiated
    EXPECT_EQ(server.max_dest_rd_atomic, 4);
    EXPECT_EQ(client.max_rd_atomic, 4);
    EXPECT_EQ(server.max_rd_atomic, 2);
    EXPECT_EQ(client.max_dest_rd_atomic, 2);
  }
  ExpectAllComplete(pair);
}

// rdma_connect(3): less than or equal to the local device's max_qp_rd_atom and max_qp_init_rd_atom.
TEST_F(DepthTest, MoreThanTheDeviceHasCannotBeConnectedWith) {
  const ibv_device_attr& attr = TheDevice().attr;
  if (std::max(attr.max_qp_rd_atom, attr.max_qp_init_rd_atom) >= 254) {
    GTEST_SKIP() << "its depths are beyond what rdma_conn_param can hold";
  }
  Listener listener;
  const EventChannel events = MakeEventChannel();
  End end(Resolve(events.get(), rdma_get_local_addr(listener.id)), events, {}, false);
  rdma_conn_param param = ConnectionParameters({});
  param.responder_resources = static_cast<uint8_t>(attr.max_qp_rd_atom + 1);
  EXPECT_EQ(rdma_connect(end.id, &param), -1);
  EXPECT_EQ(errno, EINVAL);
  param = ConnectionParameters({});
  param.initiator_depth = static_cast<uint8_t>(attr.max_qp_init_rd_atom + 1);
  EXPECT_EQ(rdma_connect(end.id, &param), -1);
  EXPECT_EQ(errno, EINVAL);
}

// ibv_create_qp(3): the values are those of the queue pair, at least what was asked for; more than
// the device has is refused.
TEST(QueueTest, CapabilitiesAreAtLeastWhatWasAskedFor) {
  Pair pair;
  const ibv_qp_cap cap = CapabilitiesOf(pair.client().qp());
  EXPECT_GE(cap.max_send_wr, 64u);
  EXPECT_GE(cap.max_recv_wr, 64u);
  EXPECT_GE(cap.max_send_sge, 2u);
}

TEST(QueueTest, MoreThanTheDeviceHasIsRefused) {
  Pair pair;
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = pair.client().cq;
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {static_cast<uint32_t>(TheDevice().attr.max_qp_wr) + 1, 1, 1, 1, 0};
  EXPECT_EQ(ibv_create_qp(pair.client().pd, &attr), nullptr);
  attr.cap = {1, 1, static_cast<uint32_t>(TheDevice().attr.max_sge) + 1, 1, 0};
  EXPECT_EQ(ibv_create_qp(pair.client().pd, &attr), nullptr);
}

// ibv_rereg_mr(3): a device may lack it, or refuse; with IBV_REREG_MR_ERR_INPUT the region is as
// before.
TEST(RegionTest, IsReregisteredOrStaysAsItWas) {
  Pair pair;
  std::vector<uint8_t> bytes(4096, 0x5a);
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  ibv_mr* mr = ibv_reg_mr(pair.server().pd, bytes.data(), bytes.size(), access);
  ASSERT_NE(mr, nullptr);
  const int result =
      ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_LOCAL_WRITE);
  if (result == 0 || result == IBV_REREG_MR_ERR_INPUT) {
    ibv_sge sge = pair.client().buffer->Sge(0, 8);
    const auto address = reinterpret_cast<uint64_t>(bytes.data());
    const ibv_wc wc = Do(pair.client(), Read(&sge, address, mr->rkey));
    EXPECT_EQ(wc.status, result == 0 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
  }
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

}  // namespace
}  // namespace verbs_contract
