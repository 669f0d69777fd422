#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstring>

#include "softverbs/tests/cm/cm_fixture.h"

// What a rdma_create_qp that fails leaves behind.

namespace softverbs::cm_test {
namespace {

constexpr uint32_t kTooMany = 1u << 30;

class FailedQpTest : public CmTest {
 protected:
  void ExpectNothingLeft() {
    EXPECT_EQ(id_->qp, nullptr);
    EXPECT_EQ(id_->send_cq, nullptr);
    EXPECT_EQ(id_->recv_cq, nullptr);
    EXPECT_EQ(id_->send_cq_channel, nullptr);
    EXPECT_EQ(id_->recv_cq_channel, nullptr);
  }

  Id id_ = Resolve(client_, port_);
};

// Completion queues of the right size were made for it before it failed.
TEST_F(FailedQpTest, LeavesTheAttributesAsTheyWere) {
  ibv_qp_init_attr attr = QpAttributes();
  attr.cap.max_inline_data = kTooMany;
  const ibv_qp_init_attr given = attr;
  EXPECT_EQ(rdma_create_qp(id_.get(), nullptr, &attr), -1);
  EXPECT_EQ(attr.send_cq, nullptr);
  EXPECT_EQ(attr.recv_cq, nullptr);
  EXPECT_EQ(attr.srq, nullptr);
  EXPECT_EQ(attr.cap.max_inline_data, kTooMany);
  EXPECT_EQ(attr.cap.max_send_wr, given.cap.max_send_wr);
  EXPECT_EQ(attr.qp_type, given.qp_type);
  ExpectNothingLeft();
}

TEST_F(FailedQpTest, LeavesTheExtendedAttributesAsTheyWere) {
  ibv_qp_init_attr_ex attr{};
  const ibv_qp_init_attr plain = QpAttributes();
  std::memcpy(&attr, &plain, sizeof(plain));
  attr.cap.max_send_sge = kTooMany;
  EXPECT_EQ(rdma_create_qp_ex(id_.get(), &attr), -1);
  EXPECT_EQ(attr.send_cq, nullptr);
  EXPECT_EQ(attr.recv_cq, nullptr);
  EXPECT_EQ(attr.comp_mask, 0u);
  EXPECT_EQ(attr.pd, nullptr);
  ExpectNothingLeft();
}

// As programs do that look for the most inline data that a device takes.
TEST_F(FailedQpTest, TheSameAttributesWithLessSucceed) {
  ibv_qp_init_attr attr = QpAttributes();
  attr.cap.max_inline_data = kTooMany;
  int tries = 1;
  while (rdma_create_qp(id_.get(), nullptr, &attr) != 0) {
    ASSERT_GT(attr.cap.max_inline_data, 0u) << strerror(errno);
    attr.cap.max_inline_data /= 2;
    ++tries;
  }
  EXPECT_GT(tries, 1);
  EXPECT_EQ(attr.send_cq, id_->send_cq);
  EXPECT_EQ(attr.recv_cq, id_->recv_cq);
  EXPECT_EQ(id_->qp->send_cq, id_->send_cq);
}

}  // namespace
}  // namespace softverbs::cm_test
