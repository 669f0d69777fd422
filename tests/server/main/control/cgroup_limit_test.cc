#include "server/main/control/cgroup_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "softverbs/tests/support/temporary_directory.h"

namespace gannet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

class CgroupLimitTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  uint64_t Bytes() const { return CgroupLimitOfProcess(root_.path()).bytes; }

  const test_support::TemporaryDirectory root_;
};

TEST_F(CgroupLimitTest, ThereIsNoneWithoutGroups) {
  EXPECT_EQ(Bytes(), kNone);
  Write("/proc/self/cgroup", "0::/");
  EXPECT_EQ(Bytes(), kNone);
}

TEST_F(CgroupLimitTest, OfVersion2IsTheLeastOfTheGroupAndThoseAboveIt) {
  Write("/proc/self/cgroup", "0::/kubepods/pod1/server");
  Write("/sys/fs/cgroup/kubepods/pod1/server/memory.max", "max");
  EXPECT_EQ(Bytes(), kNone);
  Write("/sys/fs/cgroup/kubepods/pod1/memory.max", "5000");
  EXPECT_EQ(Bytes(), 5000);
  Write("/sys/fs/cgroup/kubepods/memory.max", "9000");
  EXPECT_EQ(Bytes(), 5000);
  Write("/sys/fs/cgroup/kubepods/pod1/server/memory.max", "3000");
  const CgroupLimit limit = CgroupLimitOfProcess(root_.path());
  EXPECT_EQ(limit.bytes, 3000);
  EXPECT_EQ(limit.file, root_.path() + "/sys/fs/cgroup/kubepods/pod1/server/memory.max");
}

TEST_F(CgroupLimitTest, IsTheContainersOwnWhereThePathIsTheHosts) {
  Write("/proc/self/cgroup", "0::/system.slice/docker-1.scope");
  Write("/sys/fs/cgroup/memory.max", "4000");
  EXPECT_EQ(Bytes(), 4000);
}

TEST_F(CgroupLimitTest, OfVersion1IsThatOfTheControllerOfMemory) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/a");
  Write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(Bytes(), kNone);
  Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2000");
  EXPECT_EQ(Bytes(), 2000);
}

TEST_F(CgroupLimitTest, ReservedHugePagesAreCountedApart) {
  EXPECT_EQ(FreeHugePageBytes(root_.path()), 0);
  Write("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3");
  EXPECT_EQ(FreeHugePageBytes(root_.path()), 6 << 20);
}

TEST_F(CgroupLimitTest, ARegionBeyondItIsRefusedWithWhatToDo) {
  const CgroupLimit limit = {.bytes = 1 << 30, .file = "/sys/fs/cgroup/memory.max"};
  EXPECT_EQ(CheckCgroupLimit(1 << 30, limit), absl::OkStatus());
  EXPECT_EQ(CheckCgroupLimit(uint64_t{1} << 50, CgroupLimit()), absl::OkStatus());
  const absl::Status refused = CheckCgroupLimit((1 << 30) + 1, limit);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("1073741824 (/sys/fs/cgroup/memory.max)"), HasSubstr("raise")));
}

}  // namespace
}  // namespace gannet
