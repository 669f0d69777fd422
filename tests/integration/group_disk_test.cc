// A group of three real processes that keep the items on disks: each is stopped and started again
// under load, and then all are killed.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/client/api/patient_options.h"
#include "tests/integration/group_of_processes.h"
#include "tests/support/rest.h"
#include "tests/support/run_program.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr int kLeaseMs = 600;
constexpr std::chrono::milliseconds kDeadline{20'000};
constexpr int kKeys = 50;
constexpr int kClients = 2;

std::unique_ptr<Client> Connect(const GroupOfProcesses& group) {
  auto client = Client::Connect({group.Endpoint()}, PatientOptions());
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

// A client that puts and gets its own keys. So it knows what each get must find.
class Load {
 public:
  Load(const GroupOfProcesses& group, int number) : number_(number), client_(Connect(group)) {
    thread_ = std::thread([this] {
      for (uint64_t i = 0; !stop_.load(std::memory_order_relaxed); ++i) Step(i % kKeys);
    });
  }
  ~Load() { Stop(); }
  void Stop() {
    stop_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }

  // After Stop.
  uint64_t failed() const { return failed_; }
  uint64_t wrong() const { return wrong_; }
  const std::string& why() const { return why_; }
  std::string Key(int i) const { return absl::StrCat("client", number_, "-", i); }
  std::string Value(int i) const { return absl::StrCat(values_[i]); }

 private:
  void Step(int i) {
    const auto put = client_->Put(Key(i), absl::StrCat(++values_[i]), {}, kDeadline);
    Note(put.status());
    const auto got = client_->Get(Key(i), kDeadline);
    Note(got.status());
    if (got.ok() && (!*got || (*got)->data != Value(i))) ++wrong_;
  }
  void Note(const absl::Status& status) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    if (status.ok()) return;
    ++failed_;
    why_ = status.ToString();
  }

  const int number_;
  const std::unique_ptr<Client> client_;
  std::array<uint64_t, kKeys> values_{};
  uint64_t failed_ = 0;
  uint64_t wrong_ = 0;
  std::string why_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class GroupDiskTest : public testing::Test {
 protected:
  explicit GroupDiskTest(const std::vector<std::string>& more = {})
      : group_(
            kLeaseMs, [this](int i) { return "--data=" + data_[i].path(); }, more) {}

  static constexpr int kMembers = GroupOfProcesses::kMembers;

  void TearDown() override {
    if (!HasFailure()) return;
    for (int i = 0; i < kMembers; ++i) {
      std::cout << "--- n" << i + 1 << "\n" << group_.Log(i) << std::endl;
    }
  }
  // Returns when each client has made another 20 calls.
  void AwaitCalls(const std::vector<std::unique_ptr<Load>>& loads) {
    const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
    for (const auto& load : loads) {
      const uint64_t wanted = load->calls() + 20;
      while (load->calls() < wanted) {
        ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "a client gets no answers";
        test_support::Rest();
      }
    }
  }
  // As an operator does: the primary hands over first.
  void StopAndStart(int member) {
    group_.member(member).process().Signal(SIGTERM);
    ASSERT_EQ(group_.member(member).process().Wait(), 0) << group_.Log(member);
    group_.member(member).Restart();
  }
  // Waits until all that was acknowledged is on the primary's disk.
  void AwaitSynced() {
    const auto client = Connect(group_);
    const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
    while (std::chrono::steady_clock::now() < give_up) {
      const std::vector<ServerReport> reports = client->Stats();
      ASSERT_TRUE(reports.at(0).stats.ok()) << reports.at(0).stats.status();
      ASSERT_EQ(reports[0].stats->disk_refused, 0u);
      if (reports[0].stats->disk_behind_bytes == 0) return;
      test_support::Rest();
    }
    FAIL() << "the disk does not catch up";
  }

  const std::array<test_support::TemporaryDirectory, kMembers> data_;
  // Expects that the group has what the clients wrote last, all of which was acknowledged.
  void ExpectAllOf(const std::vector<std::unique_ptr<Load>>& loads) {
    const auto client = Connect(group_);
    for (const auto& load : loads) {
      for (int i = 0; i < kKeys; ++i) {
        const auto got = client->Get(load->Key(i), kDeadline);
        ASSERT_TRUE(got.ok()) << got.status();
        ASSERT_TRUE(got->has_value()) << load->Key(i);
        EXPECT_EQ((*got)->data, load->Value(i));
      }
    }
  }

  GroupOfProcesses group_;
};

TEST_F(GroupDiskTest, ARollingRestartFailsNoCallAndAForcedMemberHasWhatItsDiskHas) {
  auto now = group_.AwaitAllInSync();
  std::vector<std::unique_ptr<Load>> loads;
  for (int i = 0; i < kClients; ++i) loads.push_back(std::make_unique<Load>(group_, i));
  // The backups first, and then the primary.
  const int first = now.primary;
  for (int i = 1; i <= kMembers; ++i) {
    ASSERT_NO_FATAL_FAILURE(AwaitCalls(loads));
    ASSERT_NO_FATAL_FAILURE(StopAndStart((first + i) % kMembers));
    now = group_.AwaitAllInSync(now.epoch);
  }
  ASSERT_NO_FATAL_FAILURE(AwaitCalls(loads));
  EXPECT_NE(now.primary, first);
  uint64_t calls = 0;
  for (const auto& load : loads) {
    load->Stop();
    EXPECT_EQ(load->failed(), 0u) << load->why();
    EXPECT_EQ(load->wrong(), 0u);
    calls += load->calls();
  }
  std::cout << calls << " calls" << std::endl;

  ASSERT_NO_FATAL_FAILURE(AwaitSynced());
  // As long as not all have come back, nobody begins by itself.
  for (int i = 0; i < kMembers; ++i) group_.member(i).Kill();
  group_.member(now.primary).StartAgain();
  group_.AwaitAnnouncedAgain(now.primary);
  const test_support::Finished forced =
      test_support::RunProgram({test_support::ProgramPath("kvcli"), "cluster", "force", "g1",
                                absl::StrCat("--from=n", now.primary + 1), "--lose-data",
                                "--etcd=" + group_.EtcdUrl(), "--cluster=c"});
  ASSERT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_THAT(forced.err, HasSubstr("its disk has all up to LSN"));
  for (int i = 0; i < kMembers; ++i) {
    if (i != now.primary) group_.member(i).Restart();
  }
  EXPECT_EQ(group_.AwaitAllInSync(now.epoch + 1).primary, now.primary);
  ExpectAllOf(loads);
}

class GroupSyncAlwaysTest : public GroupDiskTest {
 protected:
  GroupSyncAlwaysTest() : GroupDiskTest({"--sync=always"}) {}
};

TEST_F(GroupSyncAlwaysTest, AWholeGroupComesBackWithAllThatWasAcknowledged) {
  auto now = group_.AwaitAllInSync();
  std::vector<std::unique_ptr<Load>> loads;
  for (int i = 0; i < kClients; ++i) loads.push_back(std::make_unique<Load>(group_, i));
  ASSERT_NO_FATAL_FAILURE(AwaitCalls(loads));
  // A primary that has taken over has all on its disk, too.
  ASSERT_NO_FATAL_FAILURE(StopAndStart(now.primary));
  now = group_.AwaitAllInSync(now.epoch + 1);
  ASSERT_NO_FATAL_FAILURE(AwaitCalls(loads));
  for (const auto& load : loads) {
    load->Stop();
    EXPECT_EQ(load->failed(), 0u) << load->why();
    EXPECT_EQ(load->wrong(), 0u);
  }
  for (int i = 0; i < kMembers; ++i) group_.member(i).Kill();
  // In whichever order: each is ready only when the others have come.
  for (int i = kMembers - 1; i >= 0; --i) group_.member(i).StartAgain();
  for (int i = 0; i < kMembers; ++i) group_.member(i).AwaitReady();
  const auto after = group_.AwaitAllInSync(now.epoch + 1);
  EXPECT_EQ(after.primary, now.primary);
  EXPECT_EQ(after.epoch, now.epoch + 1);
  ExpectAllOf(loads);
}

}  // namespace
}  // namespace gannet
