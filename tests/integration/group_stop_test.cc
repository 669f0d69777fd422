// When members of a group say that they are ready, and how they stop: as a supervisor sees it,
// which restarts one after the other.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/integration/group_of_processes.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kLeaseMs = 1000;
constexpr int kMembers = GroupOfProcesses::kMembers;
constexpr std::chrono::milliseconds kDeadline{20'000};

class GroupStopTest : public testing::Test {
 protected:
  explicit GroupStopTest(const std::function<std::string(int)>& flag = {},
                         const std::vector<std::string>& more = {})
      : group_(kLeaseMs, flag, more) {}

  void TearDown() override {
    if (!HasFailure()) return;
    for (int i = 0; i < kMembers; ++i) {
      std::cout << "--- n" << i + 1 << "\n" << group_.Log(i) << std::endl;
    }
  }
  void Put(int keys) {
    auto client = Client::Connect({group_.Endpoint()});
    ASSERT_TRUE(client.ok()) << client.status();
    for (int i = 0; i < keys; ++i) {
      ASSERT_TRUE((*client)->Put(absl::StrCat("key", i), "value", {}, kDeadline).ok());
    }
  }
  void ExpectAll(int keys) {
    auto client = Client::Connect({group_.Endpoint()});
    ASSERT_TRUE(client.ok()) << client.status();
    for (int i = 0; i < keys; ++i) {
      const auto got = (*client)->Get(absl::StrCat("key", i), kDeadline);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(got->has_value()) << i;
    }
  }
  bool IsInSync(int member) {
    const auto now = group_.Read();
    return std::ranges::find(now.in_sync, member) != now.in_sync.end();
  }
  void Terminate(int member) { group_.member(member).process().Signal(SIGTERM); }
  void AwaitStopped(int member) {
    EXPECT_EQ(group_.member(member).process().Wait(), 0) << group_.Log(member);
  }

  GroupOfProcesses group_;
};

// `systemctl restart` returns when a server is ready. So a loop over the hosts loses nothing if
// that means: it has the items, and could take over.
TEST_F(GroupStopTest, WhoIsReadyIsInSyncSoALoopOverTheHostsLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(Put(200));
  for (int i = 0; i < kMembers; ++i) {
    EXPECT_TRUE(IsInSync(i)) << "n" << i + 1 << " said READY";
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kMembers; ++i) {
      Terminate(i);
      AwaitStopped(i);
      EXPECT_FALSE(IsInSync(i)) << "n" << i + 1 << " has stopped";
      group_.member(i).Restart();
      EXPECT_TRUE(IsInSync(i)) << "n" << i + 1 << " said READY again";
    }
  }
  ExpectAll(200);
}

// All are told to stop at once, and started again one by one, as a new image is rolled out badly.
TEST_F(GroupStopTest, TheLastOneWaitsForOneThatJoins) {
  ASSERT_NO_FATAL_FAILURE(Put(50));
  for (int i = 0; i < kMembers; ++i) Terminate(i);
  const auto now = group_.AwaitExactly(1);
  const int last = now.primary;
  for (int i = 0; i < kMembers; ++i) {
    if (i == last) continue;
    AwaitStopped(i);
    group_.member(i).Restart();
  }
  AwaitStopped(last);
  EXPECT_THAT(group_.Log(last), Not(HasSubstr("LOST")));
  ExpectAll(50);
}

class GroupStopSoonTest : public GroupStopTest {
 protected:
  GroupStopSoonTest() : GroupStopTest({}, {"--stop_wait_s=1"}) {}
};

TEST_F(GroupStopSoonTest, TheLastOneSaysWhatIsLost) {
  ASSERT_NO_FATAL_FAILURE(Put(50));
  const int last = group_.AwaitAllInSync().primary;
  for (int i = 0; i < kMembers; ++i) {
    if (i != last) group_.member(i).Kill();
  }
  group_.AwaitExactly(1);
  Terminate(last);
  AwaitStopped(last);
  EXPECT_THAT(group_.Log(last), HasSubstr("50 items are LOST"));
}

// Before the members, which begin in the fixture's constructor.
struct Disks {
  std::array<test_support::TemporaryDirectory, kMembers> data{};
};

class GroupOnDisksTest : private Disks, public GroupStopTest {
 protected:
  GroupOnDisksTest()
      : GroupStopTest([this](int i) { return "--data=" + data[i].path(); }, {"--sync=always"}) {}
};

// As after a power cut: those that wait for others neither end nor keep them from starting.
TEST_F(GroupOnDisksTest, AWholeGroupStartsFromItsDisksInAnyOrder) {
  ASSERT_NO_FATAL_FAILURE(Put(50));
  // Of the others, which are alike, one comes before who leads, or both, or none.
  for (int first = 0; first < kMembers && !HasFailure(); ++first) {
    group_.AwaitAllInSync();
    for (int i = 0; i < kMembers; ++i) group_.member(i).Kill();
    const auto before = group_.Read();  // on a slow machine somebody took over between two kills
    for (int k = 0; k < kMembers; ++k) {
      const int i = (first + k) % kMembers;
      group_.member(i).StartAgain();
      if (k + 1 < kMembers) group_.AwaitAnnouncedAgain(i);
    }
    for (int i = 0; i < kMembers; ++i) group_.member(i).AwaitReady();
    EXPECT_EQ(group_.Read().epoch, before.epoch + 1);
  }
  ExpectAll(50);
}

}  // namespace
}  // namespace gannet
