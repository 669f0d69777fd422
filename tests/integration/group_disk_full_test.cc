// A member of a group whose disk is really full: a small tmpfs.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "tests/integration/group_of_processes.h"
#include "tests/support/run_program.h"
#include "tests/support/small_disk.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr size_t kDiskBytes = 64 << 20;
constexpr int kPuts = 50;

class GroupDiskFullTest : public testing::Test {
 protected:
  GroupDiskFullTest() {
    if (!disk_.why_not().empty()) return;
    group_.emplace(
        /*lease_ms=*/1000,
        [this](int i) {
          const std::string data = absl::StrCat(disk_.path(), "/n", i + 1);
          EXPECT_EQ(mkdir(data.c_str(), 0700), 0);
          return "--data=" + data;
        },
        std::vector<std::string>{"--http=127.0.0.1:0", "--sync_interval_ms=10"});
  }
  // Returns how many writes the member says that its disk did not take.
  uint64_t Refused(int member) {
    constexpr std::string_view kMetric = "\ngannet_disk_refused_writes_total";
    const std::string metrics =
        test_support::RunProgram({"curl", "--silent", ShownAt(group_->Log(member)) + "/metrics"})
            .out;
    const size_t line = metrics.find(kMetric);
    if (line == std::string::npos) return 0;
    return std::strtoull(metrics.c_str() + metrics.find(' ', line), nullptr, 10);
  }

  const test_support::SmallDisk disk_{kDiskBytes};  // before any process is started
  std::optional<GroupOfProcesses> group_;
};

TEST_F(GroupDiskFullTest, AMemberThatLostItsPlaceJoinsWithoutItsDiskAndCountsWhatItDoesNotKeep) {
  if (!group_) GTEST_SKIP() << "no file system of its own: " << disk_.why_not();
  const int member = (group_->AwaitAllInSync().primary + 1) % GroupOfProcesses::kMembers;
  disk_.Fill("rest", kDiskBytes);
  group_->member(member).process().Stop();
  group_->AwaitExactly(2);
  group_->member(member).process().Signal(SIGCONT);
  group_->AwaitAllInSync();
  EXPECT_THAT(group_->Log(member), HasSubstr("executes itself again"));
  EXPECT_THAT(group_->Log(member), HasSubstr("gives up its disk, and joins its group without it"));
  EXPECT_THAT(group_->Log(member), HasSubstr("No space left"));

  auto client = Client::Connect({group_->Endpoint()});
  ASSERT_TRUE(client.ok()) << client.status();
  for (int i = 0; i < kPuts; ++i) {
    const auto put = (*client)->Put(absl::StrCat("key", i), "value", {}, std::chrono::seconds(20));
    ASSERT_TRUE(put.ok()) << put.status();
  }
  // It has them in its ring, and makes them in its store some time later.
  const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
  while (Refused(member) < kPuts && std::chrono::steady_clock::now() < give_up) {
  }
  EXPECT_EQ(Refused(member), static_cast<uint64_t>(kPuts));
}

}  // namespace
}  // namespace gannet
