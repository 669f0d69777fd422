#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "softverbs/tests/cm/cm_fixture.h"

// Ids of RDMA_PS_UDP: resolving a service to the place where its datagrams go, and joining groups.

namespace softverbs::cm_test {
namespace {

constexpr size_t kSidrRequestData = 180;
constexpr size_t kSidrReplyData = 136;

struct Destroy {
  void operator()(ibv_cq* cq) const { EXPECT_EQ(ibv_destroy_cq(cq), 0); }
  void operator()(ibv_mr* mr) const { EXPECT_EQ(ibv_dereg_mr(mr), 0); }
  void operator()(ibv_ah* ah) const { EXPECT_EQ(ibv_destroy_ah(ah), 0); }
};
template <class T>
using Owned = std::unique_ptr<T, Destroy>;

Id MakeDatagramId(const Channel& channel) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_UDP), 0) << strerror(errno);
  return Id(id);
}

std::string ServiceDataOf(const Event& event) {
  const rdma_ud_param& param = event->param.ud;
  return {static_cast<const char*>(param.private_data), param.private_data_len};
}

// An id's UD queue pair, with room for one datagram each way.
struct Datagrams {
  explicit Datagrams(rdma_cm_id* owner)
      : id(owner), cq(ibv_create_cq(id->verbs, 8, nullptr, nullptr, 0)) {
    const int access = IBV_ACCESS_LOCAL_WRITE;
    mr.reset(ibv_reg_mr(id->pd, memory, sizeof(memory), access));
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq.get();
    attr.qp_type = IBV_QPT_UD;
    attr.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
    EXPECT_EQ(rdma_create_qp(id, nullptr, &attr), 0) << strerror(errno);
  }
  ~Datagrams() { rdma_destroy_qp(id); }

  ibv_sge Sge(size_t offset, uint32_t length) {
    return {reinterpret_cast<uint64_t>(memory) + offset, length, mr->lkey};
  }
  void PostReceive() {
    ibv_sge sge = Sge(0, 128);
    ibv_recv_wr wr{0, nullptr, &sge, 1};
    ibv_recv_wr* bad;
    EXPECT_EQ(ibv_post_recv(id->qp, &wr, &bad), 0);
  }
  void Send(const rdma_ud_param& to, const std::string& text) {
    ibv_ah_attr attr = to.ah_attr;
    const Owned<ibv_ah> ah(ibv_create_ah(id->pd, &attr));
    ASSERT_NE(ah, nullptr) << strerror(errno);
    memcpy(memory + 512, text.data(), text.size());
    ibv_sge sge = Sge(512, static_cast<uint32_t>(text.size()));
    ibv_send_wr wr{}, *bad;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {ah.get(), to.qp_num, to.qkey};
    ASSERT_EQ(ibv_post_send(id->qp, &wr, &bad), 0);
    EXPECT_EQ(Completion(IBV_WC_SEND).status, IBV_WC_SUCCESS);
  }
  std::string Receive() {
    const ibv_wc wc = Completion(IBV_WC_RECV);
    return {memory + sizeof(ibv_grh), wc.byte_len - sizeof(ibv_grh)};
  }
  // Returns the next completion, and expects it to be of this kind.
  ibv_wc Completion(ibv_wc_opcode opcode) {
    ibv_wc wc{};
    while (ibv_poll_cq(cq.get(), 1, &wc) == 0) usleep(100);  // the test's time limit bounds it
    EXPECT_EQ(wc.opcode, opcode);
    return wc;
  }

  rdma_cm_id* id;
  char memory[1024] = {};
  Owned<ibv_mr> mr;
  Owned<ibv_cq> cq;
};

class DatagramIdTest : public ::testing::Test {
 protected:
  DatagramIdTest() {
    EXPECT_EQ(rdma_bind_addr(listener_.get(), Endpoint("127.0.0.1", 0).get()), 0);
    EXPECT_EQ(rdma_listen(listener_.get(), 0), 0);
    port_ = PortOf(listener_);
  }

  Id Resolve(uint16_t port) {
    Id id = MakeDatagramId(client_);
    EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, Endpoint("127.0.0.1", port).get(), 2000), 0);
    Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
    EXPECT_EQ(rdma_resolve_route(id.get(), 2000), 0);
    Expect(client_, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
  }
  void Ask(const Id& id, const std::string& data = "") {
    rdma_conn_param param = Param(data);
    ASSERT_EQ(rdma_connect(id.get(), &param), 0) << strerror(errno);
  }
  // An id whose address is the group's; it is ready to join it.
  Id ResolveGroup(const std::string& group) {
    Id id = MakeDatagramId(client_);
    EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, Endpoint(group, 0).get(), 2000), 0);
    Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
    return id;
  }
  // A group of this test only, because others may run at the same time.
  static std::string OwnGroup() {
    return "239.78." + std::to_string(getpid() / 250 % 250) + "." + std::to_string(getpid() % 250);
  }

  Channel server_ = MakeChannel();
  Channel client_ = MakeChannel();
  Id listener_ = MakeDatagramId(server_);
  uint16_t port_ = 0;
};

TEST_F(DatagramIdTest, ResolvesAServiceToWhereItsDatagramsGo) {
  const Id active = Resolve(port_);
  Datagrams asking(active.get());
  Ask(active, "which one?");
  const Event request = Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request->listen_id, listener_.get());
  EXPECT_EQ(ServiceDataOf(request), Padded("which one?", kSidrRequestData));
  const Id passive(request->id);
  EXPECT_EQ(passive->qp_type, IBV_QPT_UD);
  Datagrams serving(passive.get());
  serving.PostReceive();
  rdma_conn_param param = Param("this one");
  param.qp_num = passive->qp->qp_num;
  ASSERT_EQ(rdma_accept(passive.get(), &param), 0) << strerror(errno);
  EXPECT_EQ(rdma_accept(passive.get(), &param), -1) << "it has answered";
  EXPECT_EQ(errno, EINVAL);

  const Event resolved = Expect(client_, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(ServiceDataOf(resolved), Padded("this one", kSidrReplyData));
  EXPECT_EQ(resolved->param.ud.qp_num, passive->qp->qp_num);
  EXPECT_EQ(resolved->param.ud.qkey, static_cast<uint32_t>(RDMA_UDP_QKEY));
  asking.Send(resolved->param.ud, "a datagram");
  EXPECT_EQ(serving.Receive(), "a datagram");
  EXPECT_FALSE(Readable(server_));
}

TEST_F(DatagramIdTest, TheEndOfOneSideIsNoEventOfTheOther) {
  Id active = Resolve(port_);
  Ask(active);
  const Id passive(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  rdma_conn_param param = Param();
  param.qp_num = 77;
  ASSERT_EQ(rdma_accept(passive.get(), &param), 0);
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_ESTABLISHED)->param.ud.qp_num, 77u);
  active.reset();
  // The next event is the next request, so no DISCONNECTED came before it.
  const Id other = Resolve(port_);
  Ask(other);
  const Id next(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
}

// The statuses are those of a SIDR_REP.
TEST_F(DatagramIdTest, IsUnreachableWithoutListenerAndWhenRefused) {
  constexpr int kUnsupported = 1;
  constexpr int kRefused = 2;
  const Id refused = Resolve(port_);
  Ask(refused);
  {
    const Id passive(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
    ASSERT_EQ(rdma_reject(passive.get(), "no", 2), 0);
    const Event event = Expect(client_, RDMA_CM_EVENT_UNREACHABLE);
    EXPECT_EQ(event->status, kRefused);
    EXPECT_EQ(ServiceDataOf(event), Padded("no", kSidrReplyData));
  }
  listener_.reset();
  const Id nobody = Resolve(port_);
  Ask(nobody);
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_UNREACHABLE)->status, kUnsupported);
}

TEST_F(DatagramIdTest, PrivateDataHasItsOwnLimits) {
  const Id active = Resolve(port_);
  const std::string too_much(kSidrRequestData + 1, 'x');
  rdma_conn_param param = Param(too_much);
  EXPECT_EQ(rdma_connect(active.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
  Ask(active, std::string(kSidrRequestData, 'y'));
  const Id passive(Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST)->id);
  param = Param(std::string_view(too_much).substr(0, kSidrReplyData + 1));
  EXPECT_EQ(rdma_accept(passive.get(), &param), -1);
  EXPECT_EQ(errno, EINVAL);
}

// A port of one port space does not exist in the other.
TEST_F(DatagramIdTest, SharesNoPortWithReliableIds) {
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(server_.get(), &id, nullptr, RDMA_PS_TCP), 0);
  const Id reliable(id);
  EXPECT_EQ(rdma_bind_addr(id, Endpoint("127.0.0.1", port_).get()), 0);
  const Id datagram = MakeDatagramId(server_);
  EXPECT_EQ(rdma_bind_addr(datagram.get(), Endpoint("127.0.0.1", port_).get()), -1);
  EXPECT_EQ(errno, EADDRINUSE);
}

TEST_F(DatagramIdTest, JoinsAGroupAndHearsWhatIsSentToIt) {
  const std::string group = OwnGroup();
  const Id member = ResolveGroup(group), sender = ResolveGroup(group);
  Datagrams listening(member.get()), speaking(sender.get());
  listening.PostReceive();
  int context = 0;
  ASSERT_EQ(rdma_join_multicast(member.get(), Endpoint(group, 0).get(), &context), 0);
  {
    const Event joined = Expect(client_, RDMA_CM_EVENT_MULTICAST_JOIN);
    EXPECT_EQ(joined->id, member.get());
    EXPECT_EQ(joined->param.ud.private_data, &context);
    EXPECT_EQ(joined->param.ud.qp_num, 0xffffffu);
    EXPECT_EQ(joined->param.ud.qkey, static_cast<uint32_t>(RDMA_UDP_QKEY));
  }
  Endpoint address(group, 0);
  rdma_cm_join_mc_attr_ex send_only = {};
  send_only.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  send_only.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
  send_only.addr = address.get();
  ASSERT_EQ(rdma_join_multicast_ex(sender.get(), &send_only, nullptr), 0);
  const Event to = Expect(client_, RDMA_CM_EVENT_MULTICAST_JOIN);
  speaking.PostReceive();  // which must stay empty: it only sends
  speaking.Send(to->param.ud, "to all");
  EXPECT_EQ(listening.Receive(), "to all");
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(speaking.cq.get(), 1, &wc), 0);
  EXPECT_EQ(rdma_leave_multicast(member.get(), address.get()), 0);
  EXPECT_EQ(rdma_leave_multicast(sender.get(), address.get()), 0);
  EXPECT_EQ(rdma_leave_multicast(member.get(), address.get()), -1);
  EXPECT_EQ(errno, EADDRNOTAVAIL);
}

TEST_F(DatagramIdTest, JoinsGroupsOnlyAndOnlyWhenItHasADevice) {
  const Id unbound = MakeDatagramId(client_);
  EXPECT_EQ(rdma_join_multicast(unbound.get(), Endpoint("239.1.1.1", 0).get(), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  const Id bound = ResolveGroup(OwnGroup());
  EXPECT_EQ(rdma_join_multicast(bound.get(), Endpoint("127.0.0.1", 0).get(), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(client_.get(), &id, nullptr, RDMA_PS_TCP), 0);
  const Id reliable(id);
  ASSERT_EQ(rdma_bind_addr(id, Endpoint("127.0.0.1", 0).get()), 0);
  EXPECT_EQ(rdma_join_multicast(id, Endpoint("239.1.1.1", 0).get(), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(DatagramIdTest, AGroupLeftBeforeTheEventWasTakenRaisesNone) {
  const Id id = ResolveGroup(OwnGroup());
  Endpoint group(OwnGroup(), 0);
  ASSERT_EQ(rdma_join_multicast(id.get(), group.get(), nullptr), 0);
  ASSERT_EQ(rdma_leave_multicast(id.get(), group.get()), 0);
  int context = 0;
  ASSERT_EQ(rdma_join_multicast(id.get(), group.get(), &context), 0);
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_MULTICAST_JOIN)->param.ud.private_data, &context);
  EXPECT_EQ(rdma_leave_multicast(id.get(), group.get()), 0);
}

}  // namespace
}  // namespace softverbs::cm_test
