// A kernel finds an object by its context and its handle, which are public fields. If a program
// overwrote them, or uses memory that was an object once, it is told so, and nothing happens.
#include <functional>
#include <utility>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

// Another handle, until the end of the scope.
class Overwritten {
 public:
  explicit Overwritten(uint32_t& handle) : handle_(handle) { handle_ ^= 0x00ad00ef; }
  ~Overwritten() { handle_ ^= 0x00ad00ef; }
  Overwritten(const Overwritten&) = delete;
  Overwritten& operator=(const Overwritten&) = delete;

 private:
  uint32_t& handle_;
};

class HandleTest : public ::testing::Test {
 protected:
  ibv_context* verbs() { return pair_.server().id->verbs; }
  ibv_pd* pd() { return pair_.server().pd; }

  // Expects that a verb fails while the handle is another, and works afterwards.
  void ExpectNotFound(uint32_t& handle, const std::function<int()>& verb) {
    {
      const Overwritten overwritten(handle);
      errno = 0;
      EXPECT_EQ(std::abs(verb()), ENOENT);
      EXPECT_EQ(errno, ENOENT);
    }
    EXPECT_EQ(verb(), 0);
  }

  Pair pair_;
  uint64_t bytes_[64] = {};
};

TEST_F(HandleTest, OfAnObjectToDestroyIsChecked) {
  ibv_pd* domain = ibv_alloc_pd(verbs());
  ExpectNotFound(domain->handle, [&] { return ibv_dealloc_pd(domain); });
  ibv_cq* cq = ibv_create_cq(verbs(), 1, nullptr, nullptr, 0);
  ExpectNotFound(cq->handle, [&] { return ibv_destroy_cq(cq); });
  ibv_mr* mr = ibv_reg_mr(pd(), bytes_, sizeof(bytes_), 0);
  ExpectNotFound(mr->handle, [&] { return ibv_dereg_mr(mr); });
  ibv_srq_init_attr attr{.srq_context = nullptr,
                         .attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0}};
  ibv_srq* srq = ibv_create_srq(pd(), &attr);
  ASSERT_NE(srq, nullptr) << strerror(errno);
  ExpectNotFound(srq->handle, [&] { return ibv_destroy_srq(srq); });
}

TEST_F(HandleTest, OfAWindowToFreeIsChecked) {
  if ((TheDevice().attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW) == 0) {
    GTEST_SKIP() << "it has no windows";
  }
  ibv_mw* window = ibv_alloc_mw(pd(), IBV_MW_TYPE_1);
  ASSERT_NE(window, nullptr) << strerror(errno);
  ExpectNotFound(window->handle, [&] { return ibv_dealloc_mw(window); });
}

TEST_F(HandleTest, OfAQueuePairIsChecked) {
  SKIP_ON_IWARP("its queue pairs are made by connecting");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = pair_.server().cq;
  init.cap = {.max_send_wr = 1,
              .max_recv_wr = 1,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* qp = ibv_create_qp(pd(), &init);
  ASSERT_NE(qp, nullptr) << strerror(errno);
  ibv_qp_attr attr{};
  ExpectNotFound(qp->handle, [&] { return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init); });
  attr.qp_state = IBV_QPS_RESET;
  ExpectNotFound(qp->handle, [&] { return ibv_modify_qp(qp, &attr, IBV_QP_STATE); });
  ExpectNotFound(qp->handle, [&] { return ibv_destroy_qp(qp); });
}

TEST_F(HandleTest, OfAnotherContextIsNotFound) {
  ibv_context* other = ibv_open_device(verbs()->device);
  ASSERT_NE(other, nullptr) << strerror(errno);
  ibv_pd* domain = ibv_alloc_pd(verbs());
  ibv_context* const own = std::exchange(domain->context, other);
  EXPECT_EQ(std::abs(ibv_dealloc_pd(domain)), ENOENT);
  domain->context = own;
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
  EXPECT_EQ(ibv_close_device(other), 0);
}

// The kernel says EINVAL or ENOENT, which depends on the call.
TEST_F(HandleTest, OfADomainIsCheckedWhenSomethingIsMadeInIt) {
  ibv_pd* domain = ibv_alloc_pd(verbs());
  {
    const Overwritten overwritten(domain->handle);
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(domain, bytes_, sizeof(bytes_), 0), nullptr);
    EXPECT_NE(errno, 0);
    ibv_srq_init_attr attr{.srq_context = nullptr,
                           .attr = {.max_wr = 1, .max_sge = 1, .srq_limit = 0}};
    EXPECT_EQ(ibv_create_srq(domain, &attr), nullptr);
  }
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
}

}  // namespace
}  // namespace verbs_contract
