#include "server/flags/server_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gannet {
namespace {

using testing::HasSubstr;

class ServerFlagsTest : public testing::Test {
 protected:
  static std::string Listens(DeviceKind kind) {
    const auto address = ListenAddress(kind);
    return address.ok() ? address->ToString() : std::string(address.status().message());
  }
  static std::string Wrong() { return std::string(OptionsFromFlags().status().message()); }

  const gflags::FlagSaver saved_;
};

// Anybody who reaches a server without keys may read and write all. So nobody else reaches it,
// unless somebody asks for that.
TEST_F(ServerFlagsTest, WithoutKeysItListensForThisMachineOnly) {
  EXPECT_EQ(Listens(DeviceKind::kSoftverbs), "127.0.0.1:7471");
  FLAGS_listen = "7472";
  EXPECT_EQ(Listens(DeviceKind::kSoftverbs), "0.0.0.0:7472");
  FLAGS_listen = "";
  FLAGS_auth_file = "/keys";
  EXPECT_EQ(Listens(DeviceKind::kSoftverbs), "0.0.0.0:7471");
  FLAGS_auth_file = "";
  FLAGS_advertise = "10.0.0.1:7471";
  EXPECT_EQ(Listens(DeviceKind::kSoftverbs), "0.0.0.0:7471") << "it says where others reach it";
}

TEST_F(ServerFlagsTest, RdmaDevicesHaveNoLoopbackAddress) {
  EXPECT_EQ(Listens(DeviceKind::kHardware), "0.0.0.0:7471");
  EXPECT_EQ(Listens(DeviceKind::kKernelSoftware), "0.0.0.0:7471");
}

TEST_F(ServerFlagsTest, AWrongAddressIsWrongUsage) {
  FLAGS_listen = "10.0.0.1:x";
  EXPECT_TRUE(absl::IsInvalidArgument(OptionsFromFlags().status())) << Wrong();
}

TEST_F(ServerFlagsTest, SyncAlwaysNeedsADisk) {
  EXPECT_TRUE(OptionsFromFlags().ok()) << Wrong();
  FLAGS_sync = "always";
  EXPECT_THAT(Wrong(), HasSubstr("--sync=always needs --data=DIR"));
  FLAGS_data = "/var/lib/gannet";
  EXPECT_TRUE(OptionsFromFlags().ok()) << Wrong();
}

TEST_F(ServerFlagsTest, AMemberSaysWhereItIsReached) {
  FLAGS_cluster = "c";
  FLAGS_name = "n1";
  gflags::SetCommandLineOption("etcd", "http://127.0.0.1:2379");
  EXPECT_THAT(Wrong(), HasSubstr("--cluster needs --advertise=HOST:PORT"));
  FLAGS_listen = "0.0.0.0:7471";
  EXPECT_THAT(Wrong(), HasSubstr("which --listen=0.0.0.0:7471 is not"));
  FLAGS_listen = "10.0.0.1:7471";
  EXPECT_TRUE(OptionsFromFlags().ok()) << Wrong();
  FLAGS_listen = "";
  FLAGS_advertise = "10.0.0.1:7471";
  EXPECT_TRUE(OptionsFromFlags().ok()) << Wrong();
}

}  // namespace
}  // namespace gannet
