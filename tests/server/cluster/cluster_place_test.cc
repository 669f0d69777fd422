#include "server/cluster/cluster_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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
  flags.sync_always = true;
  EXPECT_THAT(std::string(Check(flags).message()), HasSubstr("--sync=always cannot be used"));
}

TEST(ClusterPlaceTest, AServerAloneTakesNoFlagOfAMember) {
  for (const auto field :
       {&ClusterFlags::etcd, &ClusterFlags::etcd_ca_file, &ClusterFlags::advertise}) {
    ClusterFlags flags = kAlone;
    flags.*field = "x";
    EXPECT_THAT(std::string(Check(flags).message()), HasSubstr("of no use without --cluster"));
  }
}

}  // namespace
}  // namespace gannet
