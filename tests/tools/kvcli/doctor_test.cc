// What the doctor says of made-up machines, one for each fault.

#include "tools/kvcli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace gannet::kvcli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

DeviceReport Nic() {
  return {.name = "mlx5_0",
          .kind = DeviceKind::kHardware,
          .has_atomics = true,
          .ports = {{.number = 1,
                     .active = true,
                     .state = "PORT_ACTIVE",
                     .link_layer = "InfiniBand",
                     .mtu_bytes = 4096,
                     .mtu_bytes_max = 4096,
                     .gids = {"fe80::1"},
                     .interface = "eth7"}}};
}

MachineFacts Machine() {
  return {.devices = {Nic()}, .probe = {}, .huge_pages = "madvise", .cores = 16};
}

WayFacts Way() {
  return {.endpoint = "cache:7471",
          .addresses = {"10.0.0.1:7471"},
          .host = "10.0.0.1",
          .resolved = {},
          .path = CmPath{.device = "mlx5_0",
                         .port = 1,
                         .gid = "::ffff:10.0.0.2",
                         .gid_index = 3,
                         .gid_type = "RoCE v2"},
          .connected = {},
          .device = "mlx5_0",
          .kind = "hardware",
          .lock_mode = "nic",
          .read_depth = 16,
          .protocol_version = 1,
          .answered = {},
          .clock_ahead = std::chrono::milliseconds(-15)};
}

// Matches a finding of a fault, which always has something to mend it with.
auto Fault(Severity severity, const std::string& check, const std::string& text) {
  return AllOf(Field("severity", &Finding::severity, severity),
               Field("check", &Finding::check, check),
               Field("text", &Finding::text, HasSubstr(text)),
               Field("mend", &Finding::mend, Not(IsEmpty())));
}

TEST(DoctorTest, FindsNothingWrongWithAGoodMachine) {
  EXPECT_THAT(Judge(Machine(), {Way()}),
              Each(AllOf(Field("severity", &Finding::severity, Severity::kFine),
                         Field("mend", &Finding::mend, ""))));
}

TEST(DoctorTest, TellsOfAGroupsMembersAndItsPrimary) {
  WayFacts way = Way();
  EXPECT_THAT(JudgeGroup(way), IsEmpty());
  way.members = {{"10.0.0.1:7471",
                  {},
                  {.kind = MemberAnswer::Kind::kTold, .standing = {.role = MemberRole::kBackup}}},
                 {"10.0.0.2:7471", absl::NotFoundError("no route to host")}};
  way.history = 9;
  way.primary = "10.0.0.1:7471";
  way.epoch = 3;
  EXPECT_THAT(JudgeGroup(way),
              ElementsAre(Field("severity", &Finding::severity, Severity::kFine),
                          Fault(Severity::kWarning, "member", "10.0.0.2:7471: no route to host"),
                          Field("text", &Finding::text, "10.0.0.1:7471, of epoch 3")));
  EXPECT_EQ(JudgeGroup(way)[1].mend, "ip route get 10.0.0.2");
}

// A way that leads to a host says nothing of whether a member runs there.
TEST(DoctorTest, TellsWhatEachMemberAnswered) {
  const auto of = [](MemberAnswer answer) {
    return JudgeMember({.address = "10.0.0.2:7471", .answer = std::move(answer)});
  };
  using Kind = MemberAnswer::Kind;
  EXPECT_THAT(of({.kind = Kind::kDead, .why = "nobody listens there"}),
              Fault(Severity::kWarning, "member", "10.0.0.2:7471: nobody listens there"));
  EXPECT_EQ(of({.kind = Kind::kDead}).mend,
            "there: systemctl start kvserver, or kvserver --listen=10.0.0.2:7471");
  EXPECT_THAT(of({.kind = Kind::kSilent, .why = "no answer in time"}),
              Fault(Severity::kWarning, "member", "no answer in time"));
  EXPECT_THAT(of({.kind = Kind::kStarts, .why = "40 % of its memory is ready"}),
              Fault(Severity::kHint, "member", "40 %"));
  EXPECT_EQ(of({.kind = Kind::kLives, .why = "an older version"}).severity, Severity::kFine);
  MemberAnswer told = {.kind = Kind::kTold,
                       .standing = {.role = MemberRole::kBackup, .epoch = 3, .uptime_s = 63}};
  EXPECT_EQ(of(told).severity, Severity::kFine);
  EXPECT_EQ(of(told).text, "10.0.0.2:7471: backup, epoch 3, up 1 min 3 s");
  told.standing.role = MemberRole::kPrimary;
  EXPECT_THAT(of(told), Fault(Severity::kWarning, "member", "without a lease"));
  told.standing.lease_left_ms = 1;
  EXPECT_EQ(of(told).severity, Severity::kFine);
  told.standing = {.role = MemberRole::kJoining, .joined_percent = 43};
  EXPECT_THAT(of(told), Fault(Severity::kHint, "member", "43 % copied"));
  told.standing = {.role = MemberRole::kEnded};
  EXPECT_THAT(of(told), Fault(Severity::kHint, "member", "starts again"));
}

TEST(DoctorTest, HintsAtAKeyThatMayOnlyRead) {
  WayFacts way = Way();
  way.read_only = true;
  EXPECT_THAT(JudgeWay(way), Contains(Fault(Severity::kHint, "rights", "may only read")));
}

TEST(DoctorTest, MissesADevice) {
  EXPECT_THAT(JudgeDevices({}), ElementsAre(Fault(Severity::kError, "device", "no RDMA device")));
}

TEST(DoctorTest, HintsAtADeviceThatIsForTryingOut) {
  MachineFacts facts = Machine();
  facts.devices[0].kind = DeviceKind::kKernelSoftware;
  EXPECT_THAT(JudgeDevices(facts), Contains(Fault(Severity::kHint, "device", "kernel-software")));
}

TEST(DoctorTest, FindsAPortThatIsDown) {
  MachineFacts facts = Machine();
  facts.devices[0].ports[0].active = false;
  facts.devices[0].ports[0].state = "PORT_DOWN";
  EXPECT_THAT(JudgeDevices(facts), Contains(Fault(Severity::kError, "port", "PORT_DOWN")));
  EXPECT_THAT(JudgePort(facts.devices[0], facts.devices[0].ports[0])[0].mend,
              HasSubstr("ip link set dev eth7 up"));
  facts.devices[0].ports.clear();
  EXPECT_THAT(JudgeDevices(facts), Contains(Fault(Severity::kError, "port", "no port")));
}

TEST(DoctorTest, FindsAPortWithoutGids) {
  MachineFacts facts = Machine();
  facts.devices[0].ports[0].gids.clear();
  EXPECT_THAT(JudgeDevices(facts), Contains(Fault(Severity::kError, "gid", "no GID")));
}

TEST(DoctorTest, HintsAtSmallPackets) {
  MachineFacts facts = Machine();
  facts.devices[0].ports[0].mtu_bytes = 1024;
  EXPECT_THAT(JudgeDevices(facts), Contains(Fault(Severity::kHint, "mtu", "1024 bytes")));
}

TEST(DoctorTest, TellsWhyTheLoopbackTestFailed) {
  MachineFacts facts = Machine();
  facts.probe = absl::FailedPreconditionError("no queue pair");
  EXPECT_THAT(JudgeDevices(facts), Contains(Fault(Severity::kError, "loopback", "no queue pair")));
}

TEST(DoctorTest, FindsALowLimitOfLockedMemory) {
  MachineFacts facts = Machine();
  facts.memlock_bytes = 64 << 10;
  facts.memlock_hard_bytes = 64 << 10;
  EXPECT_THAT(JudgeMemlock(facts), Fault(Severity::kWarning, "memlock", "64 KiB"));
  EXPECT_THAT(JudgeMemlock(facts).mend, HasSubstr("limits.d"));
  facts.memlock_hard_bytes.reset();
  EXPECT_THAT(JudgeMemlock(facts).mend, HasSubstr("ulimit -l"));
  facts.may_lock_all = true;
  EXPECT_EQ(JudgeMemlock(facts).severity, Severity::kFine);
  facts.may_lock_all = false;
  facts.memlock_bytes = 1 << 30;
  EXPECT_EQ(JudgeMemlock(facts).severity, Severity::kFine);
}

TEST(DoctorTest, HintsAtHugePagesThatAreOff) {
  MachineFacts facts = Machine();
  facts.huge_pages = "never";
  EXPECT_THAT(JudgeHugePages(facts), Fault(Severity::kHint, "huge pages", "never"));
  facts.huge_pages = "";
  EXPECT_THAT(JudgeHugePages(facts), Fault(Severity::kHint, "huge pages", "not there"));
}

TEST(DoctorTest, WarnsOfASingleCore) {
  MachineFacts facts = Machine();
  facts.cores = 1;
  EXPECT_THAT(JudgeCores(facts), Fault(Severity::kWarning, "cores", "1 core:"));
}

TEST(DoctorTest, HintsAtFlowControlForRoceOnHardwareOnly) {
  MachineFacts facts = Machine();
  EXPECT_THAT(JudgeFlowControl(facts), IsEmpty());
  facts.devices[0].ports[0].link_layer = "Ethernet";
  EXPECT_THAT(JudgeFlowControl(facts), ElementsAre(Fault(Severity::kHint, "flow control", "PFC")));
  facts.devices[0].kind = DeviceKind::kKernelSoftware;
  EXPECT_THAT(JudgeFlowControl(facts), IsEmpty());
}

TEST(DoctorTest, FindsANameThatIsNotKnown) {
  WayFacts way = Way();
  way.resolved = absl::UnavailableError("cache: the name is not known");
  EXPECT_THAT(JudgeWay(way), ElementsAre(Fault(Severity::kError, "name", "not known")));
}

TEST(DoctorTest, SaysWhetherSoftverbsReachesOtherMachines) {
  WayFacts way = Way();
  EXPECT_THAT(JudgeWay(way), Not(Contains(Field(&Finding::check, "way")))) << "a NIC does";
  way.kind = "softverbs";
  EXPECT_THAT(JudgeWay(way), Contains(Fault(Severity::kHint, "way", "this machine only")));
  way.net = "10.0.0.2";
  EXPECT_THAT(JudgeWay(way), Contains(AllOf(Field(&Finding::severity, Severity::kFine),
                                            Field(&Finding::text, HasSubstr("10.0.0.2")))));
}

TEST(DoctorTest, SaysByWhichGidAConnectionWouldGo) {
  EXPECT_THAT(JudgePath(Way()).text,
              AllOf(HasSubstr("mlx5_0/1"), HasSubstr("GID 3 (::ffff:10.0.0.2, RoCE v2)")));
  WayFacts way = Way();
  way.path->gid = "";
  EXPECT_EQ(JudgePath(way).severity, Severity::kFine) << "iWARP has none";
}

TEST(DoctorTest, HintsAtRoceV1WhichRoutersDoNotPass) {
  WayFacts way = Way();
  way.path->gid_type = "IB/RoCE v1";
  EXPECT_THAT(JudgePath(way), Fault(Severity::kHint, "route", "RoCE v1"));
  EXPECT_THAT(JudgePath(way).mend, HasSubstr("rdma_cm/mlx5_0/ports/1/default_roce_mode"));
}

TEST(DoctorTest, FindsThatNoWayLeadsThere) {
  WayFacts way = Way();
  way.path = absl::UnavailableError("Network is unreachable");
  const std::vector<Finding> findings = JudgeWay(way);
  EXPECT_THAT(findings.back(), Fault(Severity::kError, "route", "unreachable"));
  EXPECT_THAT(findings.back().mend, HasSubstr("ip route get 10.0.0.1 "));
}

TEST(DoctorTest, WarnsOfClocksThatAreFarApart) {
  WayFacts way = Way();
  EXPECT_EQ(JudgeClock(way).severity, Severity::kFine);
  EXPECT_THAT(JudgeClock(way).text, HasSubstr("0.015 s behind this"));
  way.clock_ahead = std::chrono::milliseconds(3'600'250);
  EXPECT_THAT(JudgeClock(way), Fault(Severity::kWarning, "clock", "3600.250 s ahead of this"));
  EXPECT_THAT(JudgeClock(way).mend, HasSubstr("timedatectl"));
  way.clock_ahead = std::chrono::milliseconds(-2'000);
  EXPECT_THAT(JudgeClock(way), Fault(Severity::kWarning, "clock", "2.000 s behind"));
  EXPECT_THAT(JudgeWay(way), Contains(Fault(Severity::kWarning, "clock", "behind")));
}

TEST(DoctorTest, SaysWhatMendsAConnectionThatFails) {
  WayFacts way = Way();
  const auto mend = [&way](absl::Status connected) {
    way.connected = std::move(connected);
    const std::vector<Finding> findings = JudgeWay(way);
    EXPECT_THAT(findings.back(), Fault(Severity::kError, "connection", "why"));
    return findings.back().mend;
  };
  EXPECT_THAT(mend(absl::UnavailableError("why")), HasSubstr("4791"));
  EXPECT_THAT(mend(absl::UnavailableError("why: nobody listens there")),
              AllOf(HasSubstr("kvserver --listen=10.0.0.1:7471"), Not(HasSubstr("4791"))));
  EXPECT_THAT(mend(absl::UnavailableError("why: no answer in time")),
              AllOf(HasSubstr("4791"), Not(HasSubstr("kvserver --listen"))));
  EXPECT_THAT(mend(absl::PermissionDeniedError("why")),
              AllOf(HasSubstr("--auth_file"), HasSubstr("timedatectl")));
  EXPECT_THAT(mend(absl::UnimplementedError("why")), HasSubstr("--version"));
  EXPECT_THAT(mend(absl::ResourceExhaustedError("why")), HasSubstr("memlock"));
}

TEST(DoctorTest, SaysNothingOfADiskBehindTheMemoryThatIsNotThere) {
  EXPECT_THAT(JudgeTier({}), IsEmpty());
}

ServerStats Tier() {
  ServerStats stats;
  stats.tier_disk = 1;
  stats.tier_bytes = uint64_t{1} << 40;
  stats.items_on_disk = 5000;
  stats.tier_written = 100'000;
  stats.items_evicted = 9000;
  stats.tier_reads = 2000;
  stats.tier_read_us = 2000 * 250;
  stats.tier_stub_bytes = 960;
  stats.tier_stub_budget = 1024;
  return stats;
}

TEST(DoctorTest, FindsNothingWrongWithAGoodDiskBehindTheMemory) {
  EXPECT_THAT(JudgeTier(Tier()),
              ElementsAre(Field(&Finding::text, HasSubstr("it works: 5000 values on 109951162")),
                          Field(&Finding::text, "2000 reads of the disk, of 250 us")));
  EXPECT_THAT(JudgeTier(Tier()), Each(Field(&Finding::severity, Severity::kFine)));
  WayFacts way = Way();
  way.stats = Tier();
  EXPECT_THAT(JudgeWay(way), Contains(Field(&Finding::check, "tier")));
}

TEST(DoctorTest, TellsOfADiskBehindTheMemoryThatIsSlowFullOrFailed) {
  ServerStats stats = Tier();
  stats.tier_disk = 2;
  EXPECT_THAT(JudgeTier(stats)[0], Fault(Severity::kWarning, "tier", "more than a second"));
  stats.tier_disk = 3;
  EXPECT_THAT(JudgeTier(stats)[0], Fault(Severity::kWarning, "tier", "is full"));
  stats.tier_disk = 4;
  EXPECT_THAT(JudgeTier(stats)[0], Fault(Severity::kError, "tier", "has failed"));
}

TEST(DoctorTest, HintsAtADiskBehindTheMemoryThatDoesNotFit) {
  const auto of = [](auto change) {
    ServerStats stats = Tier();
    change(stats);
    return JudgeTier(stats);
  };
  EXPECT_THAT(of([](ServerStats& it) { it.tier_page_cache = 1; }),
              Contains(Fault(Severity::kHint, "tier", "O_DIRECT")));
  EXPECT_THAT(of([](ServerStats& it) { it.tier_read_us = it.tier_reads * 30'500; }),
              Contains(Fault(Severity::kWarning, "tier", "takes 30.5 ms")));
  EXPECT_THAT(of([](ServerStats& it) { it.tier_reads_failed = 3; }),
              Contains(Fault(Severity::kWarning, "tier", "3 of 2000 reads")));
  EXPECT_THAT(of([](ServerStats& it) { it.tier_stub_bytes = 1000; }),
              Contains(Fault(Severity::kHint, "tier", "a disk that has room")));
  EXPECT_THAT(of([](ServerStats& it) { it.items_evicted = 12'000; }),
              Contains(Fault(Severity::kHint, "tier", "12000 values were evicted")));
  EXPECT_THAT(of([](ServerStats& it) {
                it.items_evicted = 12'000;
                it.tier_disk = 4;
              }),
              Not(Contains(Field(&Finding::text, HasSubstr("12000")))));
}

TEST(DoctorTest, FindsAServerThatDoesNotAnswer) {
  WayFacts way = Way();
  way.answered = absl::DeadlineExceededError("too slow");
  EXPECT_THAT(JudgeWay(way), Contains(Fault(Severity::kError, "answer", "too slow")));
}

struct Cables {
  std::vector<DeviceReport> devices;
  std::vector<RailFacts> rails;
};

// A machine with two NICs, and a server with two rails, one of which goes through each.
Cables TwoRails() {
  Cables cables = {.devices = {Nic(), Nic()}};
  cables.devices[1].name = "mlx5_1";
  for (uint32_t i = 0; i < 2; ++i) {
    cables.rails.push_back({.told = {.address = "10.0." + std::to_string(i) + ".1:7471",
                                     .connected = true,
                                     .mtu_bytes = 4096,
                                     .mbit_per_second = 100'000,
                                     .port = i + 1,
                                     .connections = 5 - i},
                            .path = CmPath{.device = cables.devices[i].name, .port = 1}});
  }
  return cables;
}

std::vector<Finding> FaultsOf(const Cables& cables) {
  std::vector<Finding> all = JudgeRails(cables.devices, cables.rails);
  std::erase_if(all, [](const Finding& it) { return it.severity == Severity::kFine; });
  return all;
}

TEST(DoctorRailsTest, FindsNothingWrongWithRailsOfTheirOwnPorts) {
  const Cables cables = TwoRails();
  EXPECT_THAT(JudgeRails(cables.devices, cables.rails),
              ElementsAre(Field("text", &Finding::text,
                                "10.0.0.1:7471 by mlx5_0/1, packets of 4096 bytes, 100 Gbit/s"),
                          Field("text", &Finding::text,
                                "10.0.1.1:7471 by mlx5_1/1, packets of 4096 bytes, 100 Gbit/s")));
  EXPECT_THAT(FaultsOf(cables), IsEmpty());
}

TEST(DoctorRailsTest, SaysNothingOfOneRail) {
  Cables cables = TwoRails();
  cables.rails.pop_back();
  EXPECT_THAT(JudgeRails(cables.devices, cables.rails), IsEmpty());
  EXPECT_THAT(JudgeRails(cables.devices, {}), IsEmpty());
}

TEST(DoctorRailsTest, EachFaultIsNamed) {
  const struct {
    const char* text;
    void (*fault)(Cables&);
  } kCases[] = {
      {"10.0.1.1:7471: the server says that its port is down",
       [](Cables& it) {
         it.rails[1].told.up = it.rails[1].told.connected = false;
         it.rails[1].told.mtu_bytes = 1024;  // nothing of a port that is down is compared
       }},
      {"10.0.1.1:7471: no route to host",
       [](Cables& it) { it.rails[1].path = absl::NotFoundError("no route to host"); }},
      {"10.0.1.1:7471: a route leads there by mlx5_1/1, and nobody answers",
       [](Cables& it) { it.rails[1].told.connected = false; }},
      {"10.0.1.1:7471: packets of 1024 bytes here at mlx5_1/1, of 4096 bytes at the server",
       [](Cables& it) { it.devices[1].ports[0].mtu_bytes = 1024; }},
      {"10.0.1.1:7471: nobody uses it, and by the other rails come 4 connections",
       [](Cables& it) { it.rails[1].told.connections = 0; }},
      {"10.0.0.1:7471 and 10.0.1.1:7471 are of one port of the server",
       [](Cables& it) {
         it.rails[1].told.port = 1;
         it.rails[1].path = it.rails[0].path;  // which is no other fault
       }},
      {"10.0.0.1:7471 and 10.0.1.1:7471 are both reached by mlx5_0/1, although 2 ports",
       [](Cables& it) { it.rails[1].path = it.rails[0].path; }},
      {"the rails' packets differ: 10.0.0.1:7471 4096 bytes, 10.0.1.1:7471 1024 bytes",
       [](Cables& it) { it.rails[1].told.mtu_bytes = it.devices[1].ports[0].mtu_bytes = 1024; }},
      {"the rails' links differ: 10.0.0.1:7471 100 Gbit/s, 10.0.1.1:7471 2.5 Gbit/s",
       [](Cables& it) { it.rails[1].told.mbit_per_second = 2500; }},
  };
  for (const auto& it : kCases) {
    Cables cables = TwoRails();
    it.fault(cables);
    EXPECT_THAT(FaultsOf(cables), ElementsAre(Fault(Severity::kWarning, "rail", it.text)));
  }
}

TEST(DoctorRailsTest, WhatIsNotWrong) {
  const struct {
    const char* why;
    void (*fact)(Cables&);
  } kCases[] = {
      {"a machine with one port reaches both by it",
       [](Cables& it) {
         it.devices.pop_back();
         it.rails[1].path = it.rails[0].path;
       }},
      {"so does one whose other port is down",
       [](Cables& it) {
         it.devices[1].ports[0].active = false;
         it.rails[1].path = it.rails[0].path;
       }},
      {"nobody but this program uses the server",
       [](Cables& it) {
         it.rails[0].told.connections = 1;
         it.rails[1].told.connections = 0;
       }},
      {"the server does not know",
       [](Cables& it) {
         for (RailFacts& rail : it.rails) {
           rail.told.port = rail.told.connections = 0;
           rail.told.mtu_bytes = rail.told.mbit_per_second = 0;
         }
       }},
  };
  for (const auto& it : kCases) {
    Cables cables = TwoRails();
    it.fact(cables);
    EXPECT_THAT(FaultsOf(cables), IsEmpty()) << it.why;
  }
}

}  // namespace
}  // namespace gannet::kvcli
