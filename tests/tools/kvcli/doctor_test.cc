// What the doctor says of made-up machines, one for each fault.

#include "tools/kvcli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
                     .gids = {"fe80::1"}}}};
}

MachineFacts Machine() {
  return {.devices = {Nic()}, .probe = {}, .huge_pages = "madvise", .cores = 16};
}

WayFacts Way() {
  return {.endpoint = "cache:7471",
          .addresses = {"10.0.0.1:7471"},
          .resolved = {},
          .connected = {},
          .device = "mlx5_0",
          .kind = "hardware",
          .lock_mode = "nic",
          .read_depth = 16,
          .protocol_version = 1,
          .answered = {}};
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

TEST(DoctorTest, SaysWhatMendsAConnectionThatFails) {
  WayFacts way = Way();
  const auto mend = [&way](absl::Status connected) {
    way.connected = std::move(connected);
    const std::vector<Finding> findings = JudgeWay(way);
    EXPECT_THAT(findings.back(), Fault(Severity::kError, "connection", "why"));
    return findings.back().mend;
  };
  EXPECT_THAT(mend(absl::UnavailableError("why")), HasSubstr("4791"));
  EXPECT_THAT(mend(absl::PermissionDeniedError("why")),
              AllOf(HasSubstr("--auth_file"), HasSubstr("timedatectl")));
  EXPECT_THAT(mend(absl::UnimplementedError("why")), HasSubstr("--version"));
  EXPECT_THAT(mend(absl::ResourceExhaustedError("why")), HasSubstr("memlock"));
}

TEST(DoctorTest, FindsAServerThatDoesNotAnswer) {
  WayFacts way = Way();
  way.answered = absl::DeadlineExceededError("too slow");
  EXPECT_THAT(JudgeWay(way), Contains(Fault(Severity::kError, "answer", "too slow")));
}

}  // namespace
}  // namespace gannet::kvcli
