#include "server/main/flags/server_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/clocks.h"

namespace gannet {
namespace {

using testing::HasSubstr;

class ServerFlagsTest : public testing::Test {
 protected:
  static std::string Listens(DeviceKind kind) {
    const auto addresses = ListenAddresses(kind);
    if (!addresses.ok()) return std::string(addresses.status().message());
    std::string all;
    for (const SocketAddress& address : *addresses) all += " " + address.ToString();
    return all.substr(1);
  }
  static std::string Wrong() { return std::string(OptionsFromFlags().status().message()); }

  static std::string Default(const PolicySetting& setting) {
    return gflags::GetCommandLineFlagInfoOrDie(setting.name).default_value;
  }
  // As the command line does.
  static void Give(const char* flag, const char* value) {
    ASSERT_FALSE(gflags::SetCommandLineOption(flag, value).empty()) << flag;
  }
  // Returns what the server is to do in a group with this policy.
  static Server::Options InGroup(const GroupPolicy& policy) {
    auto options = OptionsFromFlags();
    EXPECT_TRUE(options.ok()) << options.status();
    const absl::Status taken = TakePolicy(policy, "g1", &*options);
    EXPECT_TRUE(taken.ok()) << taken;
    return *std::move(options);
  }

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

TEST_F(ServerFlagsTest, EachAddressIsARail) {
  FLAGS_listen = "127.0.0.1:7471,127.0.1.1:7472,[::1]";
  EXPECT_EQ(Listens(DeviceKind::kSoftverbs), "127.0.0.1:7471 127.0.1.1:7472 [::1]:7471");
  FLAGS_listen = "127.0.0.1:7471,127.0.0.1";
  EXPECT_EQ(Wrong(), "--listen=127.0.0.1:7471,127.0.0.1 has 127.0.0.1:7471 twice");
  FLAGS_listen = "127.0.0.1:7471,7472";
  EXPECT_THAT(Wrong(), HasSubstr("0.0.0.0 is of all devices"));
  FLAGS_listen = "127.0.0.1:7471,";
  EXPECT_THAT(Wrong(), HasSubstr("--listen=127.0.0.1:7471,: "));
  FLAGS_listen = "127.0.0.1";
  for (int i = 1; i < 9; ++i) FLAGS_listen += ",127.0." + std::to_string(i) + ".1";
  EXPECT_THAT(Wrong(), HasSubstr("--listen has 9 addresses; a server has at most 8 rails"));
  FLAGS_listen.resize(FLAGS_listen.rfind(','));
  EXPECT_TRUE(OptionsFromFlags().ok()) << Wrong();
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

TEST_F(ServerFlagsTest, AServerLeasesItemsIfItIsTold) {
  EXPECT_EQ(OptionsFromFlags().value().item_lease_ms, 0u);
  Give("item_lease_ms", "20");
  EXPECT_EQ(OptionsFromFlags().value().item_lease_ms, 20u);
  EXPECT_EQ(OptionsFromFlags().value().leased_items, 1024u);
  Give("item_lease_ms", "101");
  EXPECT_THAT(Wrong(), HasSubstr("--item_lease_ms must be at most 100"));
  Give("item_lease_ms", "20");
  Give("leased_items", "65537");
  EXPECT_THAT(Wrong(), HasSubstr("--leased_items must be 1 to 65536"));
}

TEST_F(ServerFlagsTest, ATierIsOfAServerThatIsAloneAndEvicts) {
  EXPECT_EQ(OptionsFromFlags().value().tier.directory, "");
  Give("tier_bytes", "2G");
  EXPECT_THAT(Wrong(), HasSubstr("--tier_bytes needs --tier=DIR"));
  Give("tier", "/disk");
  EXPECT_THAT(Wrong(), HasSubstr("--tier needs --on_full=evict"));
  Give("on_full", "evict");
  ASSERT_TRUE(OptionsFromFlags().ok()) << Wrong();
  EXPECT_EQ(OptionsFromFlags()->tier.directory, "/disk");
  EXPECT_EQ(OptionsFromFlags()->tier.bytes, 2ull << 30);
  Give("data", "/var/lib/gannet");
  EXPECT_THAT(Wrong(), HasSubstr("--tier cannot be used together with --data"));
  Give("data", "");
  Give("cluster", "c");
  EXPECT_THAT(Wrong(), HasSubstr("--tier cannot be used together with --cluster"));
}

TEST_F(ServerFlagsTest, ATierHasBytes) {
  Give("tier", "/disk");
  Give("on_full", "evict");
  EXPECT_THAT(Wrong(), HasSubstr("--tier needs --tier_bytes"));
  Give("tier_bytes", "many");
  EXPECT_THAT(Wrong(), HasSubstr("--tier_bytes=many: "));
  Give("tier_bytes", "1023M");
  EXPECT_THAT(Wrong(), HasSubstr("--tier_bytes must be at least 1G"));
  EXPECT_TRUE(absl::IsInvalidArgument(OptionsFromFlags().status()));
  Give("tier_bytes", "1G");
  EXPECT_TRUE(OptionsFromFlags().ok()) << Wrong();
}

// Its clients may have copies that it knows nothing of.
TEST_F(ServerFlagsTest, AServerWaitsForTheLeasesOfTheOneBefore) {
  EXPECT_EQ(OptionsFromFlags().value().former_leases_ms, 100u);
}

TEST_F(ServerFlagsTest, EachSettingOfAGroupIsAFlagWhoseDefaultItTakes) {
  for (const PolicySetting& setting : PolicySettings()) {
    EXPECT_TRUE(setting.Check(Default(setting)).ok()) << setting.name;
  }
}

TEST_F(ServerFlagsTest, WhatTheGroupHasWinsOverTheFlag) {
  FLAGS_data = "/var/lib/gannet";
  Give("on_full", "evict");
  Give("sync", "none");
  Give("lock_words", "8");
  const GroupPolicy policy = {.settings = {{"on_full", "reject"},
                                           {"sync", "always"},
                                           {"sync_interval_ms", "20"},
                                           {"session_grace_ms", "7000"},
                                           {"silence_ms", "300"},
                                           {"index_slots", "99"},
                                           {"index_grows", "false"}}};
  testing::internal::CaptureStderr();
  const Server::Options options = InGroup(policy);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(options.evict);
  EXPECT_EQ(options.disk.sync, Journal::Sync::kAlways);
  EXPECT_EQ(options.disk.sync_interval_ns, 20'000'000);
  EXPECT_EQ(options.session_grace_ns, 7'000'000'000);
  EXPECT_EQ(options.silence_ms, 300u);
  EXPECT_EQ(options.index_slots, 99u);
  EXPECT_FALSE(options.index_grows);
  EXPECT_EQ(options.lock_words, 8u) << "the group has none";
  EXPECT_EQ(PolicyOfFlags().Find("sync"), "always");
  EXPECT_THAT(log, HasSubstr("--on_full=evict does not count: group g1 has on_full=reject. Take "
                             "the flag away, or change it for all members: kvcli cluster set g1 "
                             "on_full=evict\n"));
  EXPECT_THAT(log, HasSubstr("--sync=none does not count"));
  EXPECT_THAT(log, HasSubstr("group g1 has no lock_words, so --lock_words=8 counts for this member "
                             "alone, unless it founds the group. To have it for all members: kvcli "
                             "cluster set g1 lock_words=8\n"));
  EXPECT_THAT(log, testing::Not(HasSubstr("silence_ms"))) << "nobody gave that flag";
}

TEST_F(ServerFlagsTest, WhatThisVersionDoesNotKnowStaysAsTheFlagHasIt) {
  testing::internal::CaptureStderr();
  const Server::Options options = InGroup(
      {.settings = {{"on_full", "spill"}, {"silence_ms", "1"}, {"shards", "3"}, {"data", "/x"}}});
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_FALSE(options.evict);
  EXPECT_EQ(options.silence_ms, Server::Options{.clocks = MachineClocks()}.silence_ms);
  EXPECT_EQ(options.disk.data, "") << "a machine's";
  for (const char* unknown : {"on_full=spill", "silence_ms=1", "shards=3", "data=/x"}) {
    EXPECT_THAT(log, HasSubstr(std::string("group g1 has ") + unknown + ", which this version"));
  }
}

TEST_F(ServerFlagsTest, AMemberWithoutADiskIsNoneOfAGroupThatNeedsOne) {
  auto options = OptionsFromFlags();
  ASSERT_TRUE(options.ok()) << options.status();
  const absl::Status taken = TakePolicy({.settings = {{"sync", "always"}}}, "g1", &*options);
  EXPECT_THAT(
      std::string(taken.message()),
      HasSubstr("group g1 has sync=always for all members: --sync=always needs --data=DIR"));
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
