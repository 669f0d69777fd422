#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "softverbs/tests/support/verbs_fixture.h"

// A kernel finds an object by its handle among those of the context that a call is about. One of
// another context is not there, whether that is of the same device or of another one: ctest runs
// this with one device and with two.

namespace softverbs {
namespace {

struct FreeDomain {
  void operator()(ibv_td* td) const { EXPECT_EQ(ibv_dealloc_td(td), 0); }
};

// The same device as OpenDevice if there is only one.
Owned<ibv_context> OpenLastDevice() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  Owned<ibv_context> context(ibv_open_device(list[count - 1]));
  ibv_free_device_list(list);
  return context;
}

// What a program has in one context.
struct Belongings {
  explicit Belongings(Owned<ibv_context> opened) : context(std::move(opened)) {}

  Owned<ibv_context> context;
  Owned<ibv_pd> pd{ibv_alloc_pd(context.get())};
  Owned<ibv_comp_channel> channel{ibv_create_comp_channel(context.get())};
  Owned<ibv_cq> cq{ibv_create_cq(context.get(), 8, nullptr, nullptr, 0)};
  Owned<ibv_srq> srq{MakeSrq()};
  std::unique_ptr<ibv_td, FreeDomain> td{MakeTd()};

  ibv_srq* MakeSrq() {
    ibv_srq_init_attr attr{};
    attr.attr = {4, 1, 0};
    return ibv_create_srq(pd.get(), &attr);
  }
  ibv_td* MakeTd() {
    ibv_td_init_attr attr{};
    return ibv_alloc_td(context.get(), &attr);
  }
};

class OtherContextTest : public ::testing::Test {
 protected:
  Owned<ibv_qp> MakeQp(ibv_context* context, ibv_pd* pd, ibv_cq* send, ibv_cq* recv, ibv_srq* srq) {
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = send;
    attr.recv_cq = recv;
    attr.srq = srq;
    attr.cap = {4, 4, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    // The second bit keeps the call from going to the domain's context by itself.
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = pd;
    return Owned<ibv_qp>(ibv_create_qp_ex(context, &attr));
  }
  // The same without the extended call.
  Owned<ibv_qp> MakePlainQp(ibv_cq* send, ibv_cq* recv, ibv_srq* srq) {
    ibv_qp_init_attr attr{};
    attr.send_cq = send;
    attr.recv_cq = recv;
    attr.srq = srq;
    attr.cap = {4, 4, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    return Owned<ibv_qp>(ibv_create_qp(own_.pd.get(), &attr));
  }
  Owned<ibv_pd> MakeParent(ibv_pd* pd, ibv_td* td) {
    ibv_parent_domain_init_attr attr{};
    attr.pd = pd;
    attr.td = td;
    return Owned<ibv_pd>(ibv_alloc_parent_domain(own_.context.get(), &attr));
  }

  Belongings own_{OpenDevice()}, other_{OpenLastDevice()};
};

TEST_F(OtherContextTest, ObjectsAreMadeOnlyOfThoseOfTheirContext) {
  ibv_context* const context = own_.context.get();
  ibv_pd* const pd = own_.pd.get();
  ibv_cq* const cq = own_.cq.get();
  struct Row {
    const char* name;
    std::function<bool(const Belongings&)> make;  // returns whether it did
    int error = ENOENT;
  };
  const std::vector<Row> rows = {
      {"a queue pair with the send CQ",
       [&](auto& of) { return MakePlainQp(of.cq.get(), cq, nullptr) != nullptr; }},
      {"a queue pair with the receive CQ",
       [&](auto& of) { return MakePlainQp(cq, of.cq.get(), nullptr) != nullptr; }},
      {"a queue pair with the SRQ",
       [&](auto& of) { return MakePlainQp(cq, cq, of.srq.get()) != nullptr; }},
      {"an extended queue pair with the send CQ",
       [&](auto& of) { return MakeQp(context, pd, of.cq.get(), cq, nullptr) != nullptr; }},
      {"an extended queue pair with the domain",
       [&](auto& of) { return MakeQp(context, of.pd.get(), cq, cq, nullptr) != nullptr; }},
      {"a CQ with the channel",
       [&](auto& of) {
         return Owned<ibv_cq>(ibv_create_cq(context, 8, nullptr, of.channel.get(), 0)) != nullptr;
       },
       EBADF},
      {"a parent domain of the domain",
       [&](auto& of) { return MakeParent(of.pd.get(), nullptr) != nullptr; }},
      {"a parent domain with the thread domain",
       [&](auto& of) { return MakeParent(pd, of.td.get()) != nullptr; }},
      {"a region that changes its domain",
       [&](auto& of) {
         static char bytes[64];
         const Owned<ibv_mr> mr(ibv_reg_mr(pd, bytes, sizeof(bytes), int{IBV_ACCESS_LOCAL_WRITE}));
         return ibv_rereg_mr(mr.get(), IBV_REREG_MR_CHANGE_PD, of.pd.get(), nullptr, 0, 0) == 0;
       }},
  };
  for (const Row& row : rows) {
    EXPECT_TRUE(row.make(own_)) << row.name << ": " << strerror(errno);
    errno = 0;
    EXPECT_FALSE(row.make(other_)) << row.name;
    EXPECT_EQ(errno, row.error) << row.name;
  }
}

struct DestroyId {
  void operator()(rdma_cm_id* id) const { EXPECT_EQ(rdma_destroy_id(id), 0); }
};

// An id has a context of its own, which is none of the program's.
TEST_F(OtherContextTest, AnIdTakesNothingOfAnotherContext) {
  rdma_cm_id* made = nullptr;
  ASSERT_EQ(rdma_create_id(nullptr, &made, nullptr, RDMA_PS_TCP), 0);
  const std::unique_ptr<rdma_cm_id, DestroyId> id(made);
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htobe32(INADDR_LOOPBACK);
  ASSERT_EQ(rdma_bind_addr(id.get(), reinterpret_cast<sockaddr*>(&loopback)), 0);
  const auto make = [&](ibv_pd* pd, ibv_cq* cq, ibv_srq* srq) {
    ibv_qp_init_attr attr{};
    attr.cap = {4, 4, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    attr.send_cq = attr.recv_cq = cq;
    attr.srq = srq;
    errno = 0;
    return rdma_create_qp(id.get(), pd, &attr) == 0 ? 0 : errno;
  };
  EXPECT_EQ(make(other_.pd.get(), nullptr, nullptr), EINVAL);  // librdmacm says this itself
  EXPECT_EQ(make(nullptr, other_.cq.get(), nullptr), ENOENT);
  EXPECT_EQ(make(nullptr, nullptr, other_.srq.get()), ENOENT);
  ASSERT_EQ(make(nullptr, nullptr, nullptr), 0);
  rdma_destroy_qp(id.get());
}

}  // namespace
}  // namespace softverbs
