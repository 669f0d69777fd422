#include "common/rdma/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "common/rdma/queue_pair.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

TEST(StatusTest, ErrnoValuesOfBothSignsCarryTheRetryClass) {
  EXPECT_TRUE(ErrnoStatus(0, "x").ok());
  EXPECT_EQ(ErrnoStatus(ENOMEM, "x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(-ENOMEM, "x").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(ETIMEDOUT, "x").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ErrnoStatus(EINVAL, "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrnoStatus(EIO, "x").code(), absl::StatusCode::kInternal);
}

TEST(StatusTest, TextSaysWhatFailedAndWhatToDo) {
  const absl::Status in_use = ErrnoStatus(EADDRINUSE, "cannot listen on 0.0.0.0:7471");
  EXPECT_THAT(TextOf(in_use), HasSubstr("0.0.0.0:7471"));
  EXPECT_THAT(TextOf(in_use), HasSubstr("choose another port"));
  EXPECT_THAT(TextOf(ErrnoStatus(ENODEV, "x")), HasSubstr("no RDMA device"));
}

TEST(StatusTest, LackOfLockableMemoryNamesTheLimit) {
  errno = ENOMEM;
  const absl::Status status = LastErrnoStatusOfPinning("cannot register 1 KiB");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(TextOf(status), HasSubstr("RLIMIT_MEMLOCK"));
  EXPECT_THAT(TextOf(status), HasSubstr("ulimit -l"));
  errno = EINVAL;
  EXPECT_EQ(LastErrnoStatusOfPinning("x").code(), absl::StatusCode::kInvalidArgument);
}

TEST(StatusTest, FailureWithoutErrnoIsStillAFailure) {
  errno = 0;
  EXPECT_FALSE(LastErrnoStatus("x").ok());
}

TEST(StatusTest, CompletionsCarryTheRetryClass) {
  ibv_wc done{};
  EXPECT_TRUE(CompletionStatus(done, "a READ").ok());
  done.status = IBV_WC_WR_FLUSH_ERR;
  EXPECT_EQ(CompletionStatus(done, "a READ").code(), absl::StatusCode::kUnavailable);
  done.status = IBV_WC_REM_ACCESS_ERR;
  EXPECT_EQ(CompletionStatus(done, "a READ").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(TextOf(CompletionStatus(done, "a READ")), HasSubstr("a READ"));
}

TEST(FailureTextTest, SaysWhatHappenedWhyAndWhatToDo) {
  const std::string unresolved = FailureText(RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, false);
  EXPECT_THAT(unresolved, HasSubstr("the address was not resolved: No route to host; check"));
  EXPECT_THAT(FailureText(RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, true),
              HasSubstr("softverbs reaches servers on this host only, unless both sides have "
                        "SOFTVERBS_NET"));
  EXPECT_THAT(FailureText(RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, false),
              HasSubstr("no path was found: Connection timed out"));
  EXPECT_THAT(FailureText(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, false),
              HasSubstr("no answer: Connection timed out; check that the server's host is up"));
  EXPECT_THAT(FailureText(RDMA_CM_EVENT_UNREACHABLE, -EACCES, true),
              HasSubstr("must be processes of one user"));
  EXPECT_THAT(FailureText(RDMA_CM_EVENT_CONNECT_ERROR, 7, false),
              HasSubstr("the connection was not made (reason 7 of the device)"));
}

TEST(WrIdTest, PacksEveryPart) {
  for (const WrId id : {WrId{}, WrId{255, WrId::kOwnerMask, ~0u}, WrId{1, 2, 3}, WrId{7, 0, ~0u}}) {
    EXPECT_EQ(WrId::Unpack(id.Pack()), id);
  }
  EXPECT_EQ((WrId{.kind = 1, .owner = 2, .slot = 3}.Pack()), 0x0100000200000003u);
}

TEST(PostResultTest, OnlyAFullQueueThatTookNothingIsHarmless) {
  EXPECT_EQ(RefusalResult(ENOMEM, true), PostResult::kQueueFull);
  EXPECT_EQ(RefusalResult(-ENOMEM, true), PostResult::kQueueFull);
  EXPECT_EQ(RefusalResult(ENOMEM, false), PostResult::kBroken);
  EXPECT_EQ(RefusalResult(EINVAL, true), PostResult::kBroken);
}

}  // namespace
}  // namespace gannet
