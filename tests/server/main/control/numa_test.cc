#include "server/main/control/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <map>
#include <string>

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGiB = 1ull << 30;

// Two nodes of 8 cores and 64 GiB; mlx5_0 is at node 1.
class TwoNodes : public NumaMachine {
 public:
  std::vector<int> Nodes() const override { return nodes; }
  std::optional<int> NodeOf(const std::string& device) const override {
    const auto it = devices.find(device);
    if (it == devices.end()) return std::nullopt;
    return it->second;
  }
  int CoresOf(int node) const override { return node == without_cores ? 0 : 8; }
  uint64_t MemoryOf(int) const override { return 64 * kGiB; }
  absl::Status Bind(int node) override {
    bound = node;
    return bind_status;
  }

  std::vector<int> nodes = {0, 1};
  std::map<std::string, int> devices = {{"mlx5_0", 1}};
  int without_cores = -1;
  absl::Status bind_status;
  std::optional<int> bound;
};

class NumaTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Choose(std::string_view flag, const std::string& device = "mlx5_0",
                                     uint64_t memory_bytes = kGiB) {
    return ChooseNumaNode({.flag = flag, .device = device, .memory_bytes = memory_bytes}, machine_);
  }
  std::string Said(const absl::StatusOr<std::string>& line) {
    EXPECT_TRUE(line.ok()) << line.status();
    return line.value_or("");
  }

  TwoNodes machine_;
};

TEST_F(NumaTest, AutoGoesToTheDevicesNode) {
  EXPECT_THAT(Said(Choose("auto")), HasSubstr("NUMA node 1, that of mlx5_0: threads on its 8"));
  EXPECT_EQ(machine_.bound, 1);
}

TEST_F(NumaTest, OffBindsNothing) {
  EXPECT_THAT(Said(Choose("off")), HasSubstr("--numa=off"));
  EXPECT_EQ(machine_.bound, std::nullopt);
}

TEST_F(NumaTest, ANumberGoesToThatNode) {
  EXPECT_THAT(Said(Choose("0")), HasSubstr("NUMA node 0: "));
  EXPECT_EQ(machine_.bound, 0);
}

TEST_F(NumaTest, OneNodeNeedsNoChoiceAndIsTold) {
  for (const std::vector<int>& nodes : {std::vector<int>{0}, std::vector<int>{}}) {
    machine_.nodes = nodes;
    EXPECT_THAT(Said(Choose("auto")), HasSubstr("one NUMA node"));
  }
  EXPECT_EQ(machine_.bound, std::nullopt);
}

TEST_F(NumaTest, AutoLeavesAllAsItIsWhereItCannotTellOrItDoesNotFit) {
  EXPECT_THAT(Said(Choose("auto", "softverbs0")), HasSubstr("softverbs0 is not known"));
  EXPECT_THAT(Said(Choose("auto", "mlx5_0", 65 * kGiB)), HasSubstr("--memory asks for"));
  machine_.without_cores = 1;
  EXPECT_THAT(Said(Choose("auto")), HasSubstr("may use no core of NUMA node 1"));
  EXPECT_EQ(machine_.bound, std::nullopt);
}

TEST_F(NumaTest, ANodeThatWasNamedAndCannotBeUsedIsAnError) {
  for (const auto& status : {Choose("2").status(), Choose("0", "mlx5_0", 65 * kGiB).status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
  EXPECT_EQ(machine_.bound, std::nullopt);
  machine_.bind_status = absl::FailedPreconditionError("not here");
  EXPECT_EQ(Choose("0").status().message(), "not here");
}

TEST_F(NumaTest, TheFlagIsAutoOffOrANumber) {
  for (const char* good : {"auto", "off", "0", "3"}) EXPECT_TRUE(CheckNumaFlag(good).ok()) << good;
  for (const char* bad : {"", "on", "-1", "0x1", "1,2"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckNumaFlag(bad))) << bad;
  }
}

// Whatever this machine is, its first node can be used, and has the cores that this process has
// there afterwards.
TEST(ThisNumaMachineTest, ItsFirstNodeCanBeUsed) {
  NumaMachine& machine = NumaMachine::This();
  const std::vector<int> nodes = machine.Nodes();
  if (nodes.empty()) GTEST_SKIP() << "the kernel does not tell of NUMA nodes";
  const int cores = machine.CoresOf(nodes.front());
  if (cores == 0) GTEST_SKIP() << "this process may use no core of the first node";
  EXPECT_GT(machine.MemoryOf(nodes.front()), 0u);
  ASSERT_TRUE(machine.Bind(nodes.front()).ok());
  cpu_set_t now;
  ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
  EXPECT_EQ(CPU_COUNT(&now), cores);
  EXPECT_EQ(machine.NodeOf("no-such-device"), std::nullopt);
}

}  // namespace
}  // namespace gannet
