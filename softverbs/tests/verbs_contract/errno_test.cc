// Verbs that return an error number leave it in errno too, for programs that call perror.
#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

#define EXPECT_FAILS_WITH(number, call) \
  do {                                  \
    errno = 0;                          \
    EXPECT_EQ(std::abs(call), number);  \
    EXPECT_EQ(errno, number) << #call;  \
  } while (false)

TEST(ErrnoTest, ObjectsInUseAreBusy) {
  Pair pair;
  EXPECT_FAILS_WITH(EBUSY, ibv_dealloc_pd(pair.server().pd));
  EXPECT_FAILS_WITH(EBUSY, ibv_destroy_cq(pair.server().cq));
}

TEST(ErrnoTest, IllegalMovesAreInvalid) {
  SKIP_ON_IWARP("its states are others");
  Pair pair;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_FAILS_WITH(EINVAL, ibv_modify_qp(pair.client().qp(), &attr, IBV_QP_STATE));
}

TEST(ErrnoTest, AQueueTooSmallForItsCompletionsIsNotMade) {
  Pair pair;
  errno = 0;
  const int error = ibv_resize_cq(pair.client().cq, -1);
  if (error == 0) GTEST_SKIP() << "it takes any size";
  if (error == EOPNOTSUPP) GTEST_SKIP() << "it cannot resize";
  EXPECT_NE(errno, 0);
}

}  // namespace
}  // namespace verbs_contract
