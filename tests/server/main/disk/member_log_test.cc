#include "server/main/disk/member_log.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clocks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/journal/posix_files.h"
#include "server/main/disk/data_directory.h"
#include "server/main/disk/run_directories.h"
#include "server/main/disk/snapshot.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/server/log/journal/simulated_files.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Items = std::map<std::string, std::string>;

constexpr uint64_t kHistory = 0xab;

// A member's store and log.
class MemberLogTest : public testing::Test, private MemberLogOwner {
 protected:
  // Starts a run in its own directory, beside that of a former one.
  void Start(SimulatedFiles* own, SimulatedFiles* former = nullptr,
             Journal::Sync sync = Journal::Sync::kInterval) {
    ++incarnation_;
    log_.reset();
    whole_ = 0;
    store_ = std::make_unique<TestStore>(8 << 20);
    auto log = MemberLog::Open({.own = own,
                                .former = former,
                                .owner = this,
                                .store = &**store_,
                                .writes = &store_->writes(),
                                .changes = &store_->changes(),
                                .incarnation = incarnation_,
                                .sync = sync,
                                .segment_bytes = 64 << 10,
                                .clock = [this] { return now_ns_; },
                                .wall = MachineWallTime,
                                .new_number = 77});
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
    store_->changes().Add(&first_, ChangeStream::Need::kHears);
    store_->changes().Add(
        log_.get(), log_->always() ? ChangeStream::Need::kRequired : ChangeStream::Need::kHears);
    (*store_)->UseSink(&store_->changes());
  }
  void OnWhole() override { ++whole_; }
  void Poll(int times = 1) {
    for (int i = 0; i < times; ++i) log_->log()->Poll(now_ns_ += kNsPerMs);
  }
  void AwaitWhole() {
    for (int i = 0; i < 1'000 && whole_ == 0; ++i) Poll();
    ASSERT_EQ(whole_, 1);
  }
  // What a next run finds.
  Items Kept(SimulatedFiles* files) {
    log_.reset();
    Items items;
    EXPECT_TRUE(ReadDirectory(files, [&](const Change& change) {
                  const std::string key(change.key);
                  if (change.kind == Change::Kind::kPut) {
                    items[key] = change.value;
                  } else {
                    items.erase(key);
                  }
                  return absl::OkStatus();
                }).ok());
    return items;
  }

  // The group's stream, which is the first to hear.
  struct First : public ChangeConsumer {
    bool Take(const Change&, ChangePlace*) override { return true; }
  };

  int64_t now_ns_ = kNsPerSecond;
  uint64_t incarnation_ = 0;
  int whole_ = 0;
  SimulatedFiles files_{1};
  First first_;
  std::unique_ptr<TestStore> store_;
  std::unique_ptr<MemberLog> log_;
};

TEST_F(MemberLogTest, OneThatBeginsEmptyIsWholeAtOnce) {
  Start(&files_);
  log_->Begin(kHistory, 0);
  store_->Put("a", "1");
  store_->Put("b", "2");
  store_->Delete("a");
  Poll();
  EXPECT_EQ(Kept(&files_), (Items{{"b", "2"}}));
}

TEST_F(MemberLogTest, KeepsWhatWasThereAtTheBeginAndWhatChangedSince) {
  Start(&files_);
  store_->Put("a", "1");
  store_->Put("b", "1");
  Poll(100);
  EXPECT_EQ(whole_, 0);
  EXPECT_EQ(log_->log()->appended(), 0u) << "what a joiner copies is not in the journal";
  log_->Begin(kHistory, 0);
  store_->Put("b", "2");
  AwaitWhole();
  store_->Put("c", "3");
  Poll();
  EXPECT_EQ(Kept(&files_), (Items{{"a", "1"}, {"b", "2"}, {"c", "3"}}));
}

TEST_F(MemberLogTest, GivesWhatAFormerRunKept) {
  Start(&files_);
  log_->Begin(kHistory, 0);
  store_->Put("a", "1");
  log_->Note(kHistory, 4096);
  ASSERT_TRUE(log_->log()->Close(now_ns_).ok());
  Poll();
  SimulatedFiles next(2);
  Start(&next, &files_);
  EXPECT_EQ(log_->former_path(), "/simulated");
  EXPECT_EQ(log_->FormerLsn(kHistory), 4096u);
  EXPECT_EQ(log_->FormerLsn(kHistory + 1), 0u);
  const auto make = [this](const Change& change) {
    EXPECT_EQ((*store_)->Apply(change, At(1)), ReplyStatus::kOk);
    return absl::OkStatus();
  };
  ASSERT_TRUE(log_->Restore(make).ok());
  log_->Begin(kHistory, 0);
  EXPECT_EQ(whole_, 0) << "the former run is all that there is on disk";
  AwaitWhole();
  EXPECT_EQ(Kept(&next), (Items{{"a", "1"}}));
}

// A note says what is on disk, so it comes after that.
TEST_F(MemberLogTest, NotesWhatIsOnDiskOnly) {
  Start(&files_);
  log_->Begin(kHistory, 0);
  store_->Put("a", "1");
  log_->Note(kHistory, 10);
  Poll();
  store_->Put("b", "1");
  log_->Note(kHistory, 20);
  Poll(2);  // within the interval of the last sync
  SimulatedFiles next(2);
  Start(&next, &files_);
  EXPECT_EQ(log_->FormerLsn(kHistory), 10u);
}

// Clients' writes are in the store when they are published, so a walk that began with the newest
// record would miss those that wait.
TEST_F(MemberLogTest, APrimarysSnapshotBeginsWhereAllIsPublished) {
  Start(&files_);
  store_->Put("copied", "1");
  log_->Begin(kHistory, 0);
  AwaitWhole();
  store_->Put("applied", "1");
  log_->Lead();
  store_->writes().WaitFor(&store_->changes());
  const auto waiting = store_->writes().Put("waits", "1", {}, {}, At(1));
  ASSERT_EQ(waiting.outcome.status, ReplyStatus::kOk);
  whole_ = 0;
  log_->log()->snapshots().Ask();
  AwaitWhole();
  store_->writes().Publish(store_->changes().end());
  EXPECT_EQ(Kept(&files_), (Items{{"copied", "1"}, {"applied", "1"}, {"waits", "1"}}));
}

TEST_F(MemberLogTest, GoesOnWithoutADiskThatFails) {
  Start(&files_);
  log_->Begin(kHistory, 0);
  store_->Put("a", "1");
  files_.SetFault(SimulatedFiles::Fault::kIoError, files_.operations() + 1);
  Poll();
  EXPECT_FALSE(log_->behind());
  EXPECT_TRUE(log_->given_up());
  EXPECT_EQ(store_->Put("b", "2").status, ReplyStatus::kOk);
  EXPECT_EQ(store_->Get("b"), "2");
  StatsReply stats{};
  log_->log()->FillStats(&stats);
  EXPECT_GT(stats.disk_refused, 0u);
  const uint64_t refused = stats.disk_refused;
  EXPECT_TRUE(log_->Hears()) << "of a backup, too, each change counts";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(store_->Put("b", "3").status, ReplyStatus::kOk);
  log_->log()->FillStats(&stats);
  EXPECT_EQ(stats.disk_refused, refused + 5) << "what is not kept";
  // It would have what the journal does not have.
  log_->log()->snapshots().Ask();
  Poll(1'000);
  EXPECT_EQ(whole_, 0);
}

TEST_F(MemberLogTest, WritesWaitForADiskThatIsBehindButNotForOneThatHangs) {
  Start(&files_);
  log_->Begin(kHistory, 0);
  EXPECT_FALSE(log_->behind());
  store_->Put("a", "1");  // nobody polls
  now_ns_ += 3 * kNsPerSecond;
  EXPECT_TRUE(log_->behind());
  EXPECT_EQ(store_->Put("b", "2").status, ReplyStatus::kOk) << "a backup does not wait";
  Poll(2);
  EXPECT_FALSE(log_->behind());
  now_ns_ += 20 * kNsPerSecond;
  EXPECT_FALSE(log_->behind()) << "there is nothing to do";
  store_->Put("c", "3");
  now_ns_ += 3 * kNsPerSecond;
  EXPECT_TRUE(log_->behind());
  now_ns_ += MemberLog::kPatienceNs;
  EXPECT_FALSE(log_->behind());
  EXPECT_TRUE(log_->given_up());
}

// A primary asks before it takes a write. The rule is that of a server alone (DiskLogTest).
TEST_F(MemberLogTest, WritesWaitForAMomentWhileEarlierOnesAreNotWritten) {
  for (const auto sync : {Journal::Sync::kNone, Journal::Sync::kInterval, Journal::Sync::kAlways}) {
    files_ = SimulatedFiles(1);
    Start(&files_, nullptr, sync);
    log_->Begin(kHistory, 1);
    store_->Put("a", "1");
    now_ns_ += 5 * kNsPerMs;
    EXPECT_FALSE(log_->behind());
    now_ns_ += 1;
    const bool waits = sync == Journal::Sync::kAlways;  // until it is on disk
    EXPECT_EQ(log_->behind(), !waits);
    EXPECT_EQ(store_->Put("b", "2").status, ReplyStatus::kOk) << "a backup does not wait";
    EXPECT_EQ(log_->behind(), !waits);
    log_->log()->Write();
    EXPECT_FALSE(log_->behind());
    EXPECT_FALSE(log_->given_up());
  }
}

constexpr auto kAlways = Journal::Sync::kAlways;

// A write waits for the copies and for the disk.
TEST_F(MemberLogTest, WithSyncAlwaysWhatIsSafeIsOnDisk) {
  Start(&files_, nullptr, kAlways);
  log_->Begin(kHistory, 1);
  store_->Put("a", "1");
  EXPECT_LT(store_->changes().safe(), store_->changes().end());
  Poll();
  EXPECT_EQ(store_->changes().safe(), store_->changes().end());
  EXPECT_FALSE(log_->refuses());
  files_.SetFault(SimulatedFiles::Fault::kIoError, files_.operations() + 1);
  store_->Put("b", "2");
  Poll();
  EXPECT_LT(store_->changes().safe(), store_->changes().end());
  log_->behind();
  EXPECT_TRUE(log_->refuses());
}

TEST_F(MemberLogTest, APrimaryTakesClientsWhenItsDiskHasAllAndANoteOfIt) {
  Start(&files_, nullptr, kAlways);
  store_->Put("copied", "1");
  log_->Begin(kHistory, 0);
  store_->Put("applied", "1");
  EXPECT_FALSE(log_->MayOpen(3));
  EXPECT_FALSE(log_->whole());
  AwaitWhole();
  EXPECT_TRUE(log_->whole());
  Poll();
  EXPECT_TRUE(log_->MayOpen(3));
  store_->Put("later", "1");
  EXPECT_TRUE(log_->MayOpen(3)) << "of clients' writes each waits for itself";
  EXPECT_FALSE(log_->MayOpen(4));
  SimulatedFiles next(2);
  Start(&next, &files_);
  EXPECT_EQ(log_->Former(kHistory),
            (KeptRun{.process = 1, .history = kHistory, .always = true, .opened = 3}));
  EXPECT_FALSE(log_->Former(kHistory + 1));
}

TEST_F(MemberLogTest, WithoutItNobodyWaitsForTheDisk) {
  Start(&files_);
  log_->Begin(kHistory, 1);
  EXPECT_TRUE(log_->MayOpen(3));
  Poll();
  SimulatedFiles next(2);
  Start(&next, &files_);
  EXPECT_EQ(log_->Former(kHistory), (KeptRun{.process = 1, .history = kHistory}));
}

// The group is begun again with it. It counts as one of the new process, too, but only in the new
// history: the register may not have it.
TEST_F(MemberLogTest, ARunThatIsClaimedCountsInBothHistories) {
  Start(&files_, nullptr, kAlways);
  log_->Begin(kHistory, 1);
  store_->Put("a", "1");
  Poll(2);
  const KeptRun kept = {.process = 1, .history = kHistory, .always = true, .opened = 1};
  const uint64_t next_history = kHistory + 1;
  {
    SimulatedFiles next(2);
    Start(&next, &files_, kAlways);
    ASSERT_EQ(log_->Former(kHistory), kept);
    ASSERT_TRUE(log_->Claim(kHistory, next_history, 2).ok());
    log_.reset();
  }
  SimulatedFiles third(3);
  Start(&third, &files_, kAlways);
  EXPECT_EQ(log_->Former(kHistory), kept);
  EXPECT_EQ(log_->Former(next_history),
            (KeptRun{.process = 2, .history = next_history, .always = true, .opened = 2}));
  // Once more, from the history that it began.
  ASSERT_TRUE(log_->Claim(next_history, next_history + 1, 3).ok());
  EXPECT_FALSE(log_->Former(kHistory));
  EXPECT_EQ(log_->Former(next_history)->process, 2u);
  EXPECT_EQ(log_->Former(next_history + 1)->process, 3u);
}

// Somebody else may have what it lost.
TEST_F(MemberLogTest, ARunThatCannotBeReadIsNotClaimed) {
  Start(&files_);
  store_->Put("a", "1");
  log_->Begin(kHistory, 1);
  AwaitWhole();
  Poll();
  log_.reset();
  const auto names = files_.List();
  ASSERT_TRUE(names.ok());
  for (const std::string& name : *names) {
    if (!PositionOfSnapshot(name)) continue;
    const auto file = files_.Open(name);
    ASSERT_TRUE((*file)->Truncate(kSnapshotHeaderBytes + 8).ok());
  }
  SimulatedFiles next(2);
  Start(&next, &files_);
  ASSERT_TRUE(log_->Former(kHistory));
  EXPECT_TRUE(absl::IsDataLoss(log_->Claim(kHistory, kHistory + 1, 2)));
  EXPECT_FALSE(log_->Former(kHistory + 1));
}

class RunDirectoriesTest : public testing::Test {
 protected:
  // Returns the names of the runs that are there.
  std::vector<std::string> Runs() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path())) {
      if (entry.is_directory()) names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }
  std::string path() const { return directory_.path(); }
  std::string Refusal() const {
    return std::string(RunDirectories::Open(path()).status().message());
  }

  const test_support::TemporaryDirectory directory_;
};

TEST_F(RunDirectoriesTest, KeepsTheNewestWholeRunUntilTheNextOneIsWhole) {
  for (int i = 0; i < 2; ++i) {
    const auto runs = RunDirectories::Open(path());
    ASSERT_TRUE(runs.ok()) << runs.status();
    EXPECT_EQ((*runs)->former(), nullptr);
    if (i == 0) continue;
    ASSERT_TRUE((*runs)->own()->Create(SnapshotName(0)).ok());
  }
  EXPECT_THAT(Runs(), ElementsAre("run-000002"));
  EXPECT_EQ(NewestRunIn(path()), path() + "/run-000002");
  for (int i = 0; i < 2; ++i) {
    const auto runs = RunDirectories::Open(path());
    ASSERT_TRUE(runs.ok()) << runs.status();
    ASSERT_NE((*runs)->former(), nullptr);
    EXPECT_EQ((*runs)->former()->path(), path() + "/run-000002");
    EXPECT_THAT(Runs(), ElementsAre("run-000002", "run-00000" + std::to_string(3 + i)))
        << "a run that is not whole goes";
    if (i == 0) continue;
    ASSERT_TRUE((*runs)->own()->Create(SnapshotName(0)).ok());
    ASSERT_TRUE((*runs)->RemoveFormer().ok());
    EXPECT_THAT(Runs(), ElementsAre("run-000004"));
  }
}

TEST_F(RunDirectoriesTest, RefusesWhatIsNoMembersDirectory) {
  const auto runs = RunDirectories::Open(path());
  ASSERT_TRUE(runs.ok());
  EXPECT_THAT(Refusal(), HasSubstr("another process uses the directory"));
  const test_support::TemporaryDirectory alone;
  {
    const auto files = OpenDirectory(alone.path());
    ASSERT_TRUE((*files)->Create(kDataFileName).ok());
  }
  EXPECT_THAT(std::string(RunDirectories::Open(alone.path()).status().message()),
              HasSubstr("of a server that is in no group"));
  const test_support::TemporaryDirectory other;
  {
    const auto files = OpenDirectory(other.path());
    ASSERT_TRUE((*files)->Create("letter").ok());
  }
  EXPECT_THAT(std::string(RunDirectories::Open(other.path()).status().message()),
              HasSubstr("has files (letter)"));
  EXPECT_EQ(NewestRunIn(other.path()), other.path());
}

// To which it would seem empty.
TEST_F(RunDirectoriesTest, AServerAloneRefusesAMembersDirectory) {
  ASSERT_TRUE(RunDirectories::Open(path()).ok());
  const auto files = OpenDirectory(path());
  ASSERT_TRUE(files.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(NumberOfDirectory(files->get(), 1).status()));
}

}  // namespace
}  // namespace gannet
