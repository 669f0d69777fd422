#include "server/group/cluster/cluster_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "softverbs/tests/support/key_file.h"

namespace gannet {
namespace {

using testing::HasSubstr;

const ClusterFlags kAlone = {.listen = "0.0.0.0:7471"};
const ClusterFlags kMember = {.cluster = "c",
                              .etcd = "http://127.0.0.1:2379",
                              .advertise = "10.0.0.1:7471",
                              .name = "n1",
                              .listen = "0.0.0.0:7471"};

TEST(ClusterPlaceTest, TakesFlagsThatGoTogether) {
  EXPECT_TRUE(Check(kAlone).ok());
  EXPECT_FALSE(kAlone.asks_for_member());
  EXPECT_TRUE(Check(kMember).ok()) << Check(kMember);
  EXPECT_TRUE(kMember.asks_for_member());
  ClusterFlags one_address = kMember;
  one_address.advertise = "";
  one_address.listen = "10.0.0.1:0";
  EXPECT_TRUE(Check(one_address).ok()) << Check(one_address);
}

TEST(ClusterPlaceTest, SaysWhichFlagIsMissingOrDoesNotGoWithIt) {
  const struct {
    std::string ClusterFlags::*field;
    const char* value;
    const char* says;
  } cases[] = {
      {&ClusterFlags::cluster, "a b", "--cluster: the name of a cluster"},
      {&ClusterFlags::etcd, "", "--cluster needs --etcd"},
      {&ClusterFlags::name, "", "--cluster needs --name"},
      {&ClusterFlags::name, "a b", "--name: the name of a node"},
      {&ClusterFlags::advertise, "", "--cluster needs --advertise=HOST:PORT"},
      {&ClusterFlags::advertise, "10.0.0.1", "is no HOST:PORT"},
      {&ClusterFlags::advertise, "0.0.0.0:7471", "is no HOST:PORT"},
      {&ClusterFlags::advertise, "[::]:7471", "is no HOST:PORT"},
      {&ClusterFlags::memory_file, "/dev/shm/x", "--memory_file cannot be used"},
      {&ClusterFlags::restore_from, "/var/x", "--restore_from cannot be used"},
  };
  for (const auto& c : cases) {
    ClusterFlags flags = kMember;
    flags.*c.field = c.value;
    const absl::Status status = Check(flags);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.says;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.says));
  }
  ClusterFlags flags = kMember;
  flags.sync = "always";
  EXPECT_THAT(std::string(Check(flags).message()), HasSubstr("--sync=always needs --data"));
  flags.data = "/var/x";
  EXPECT_TRUE(Check(flags).ok()) << Check(flags);
}

TEST(ClusterPlaceTest, FlagsOfEtcdGoTogether) {
  ClusterFlags flags = kMember;
  flags.etcd_access.user = "gannet";
  EXPECT_THAT(std::string(Check(flags).message()), HasSubstr("--etcd_password_file go together"));
  flags.etcd_access.password_file = "/none";
  EXPECT_TRUE(Check(flags).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(FindClusterPlace(flags).status()));
  flags.etcd_access.cert_file = "/cert";
  EXPECT_THAT(std::string(Check(flags).message()), HasSubstr("--etcd_key_file go together"));
  test_support::KeyFile file("sea gull\n");
  const auto options = ClientOptions({.user = "gannet", .password_file = file.path()});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->password, "sea gull");
  ASSERT_EQ(chmod(file.path().c_str(), 0644), 0);
  EXPECT_THAT(
      std::string(
          ClientOptions({.user = "gannet", .password_file = file.path()}).status().message()),
      HasSubstr("chmod 600"));
}

TEST(ClusterPlaceTest, AServerAloneTakesNoFlagOfAMember) {
  ClusterFlags with_user = kAlone;
  with_user.etcd_access.user = "gannet";
  EXPECT_THAT(std::string(Check(with_user).message()), HasSubstr("of no use without --cluster"));
  for (const auto field : {&ClusterFlags::etcd, &ClusterFlags::advertise}) {
    ClusterFlags flags = kAlone;
    flags.*field = "x";
    EXPECT_THAT(std::string(Check(flags).message()), HasSubstr("of no use without --cluster"));
  }
}

}  // namespace
}  // namespace gannet
