// Runs without softverbs. Checks what Connect says on a machine that has no RDMA device.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/rdma/device.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

void ExpectAdvice(const absl::Status& status) {
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("softverbs-run"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("gannet::softverbs"));
}

TEST(NoDeviceTest, ConnectNamesTheWaysOntoSoftverbs) {
  if (!ListDevices().empty()) GTEST_SKIP() << "this machine has an RDMA device";
  ExpectAdvice(Client::Connect({"127.0.0.1:7471"}).status());
  ExpectAdvice(AsyncClient::Connect({"127.0.0.1:7471"}).status());
}

TEST(NoDeviceTest, SoftIsAFlagForProgramsThatRunOnIt) {
  Options options;
  options.device = "soft";
  ExpectAdvice(Client::Connect({"127.0.0.1:7471"}, options).status());
}

}  // namespace
}  // namespace gannet
