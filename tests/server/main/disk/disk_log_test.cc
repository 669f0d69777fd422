#include "server/main/disk/disk_log.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clocks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/log/journal/hooked_files.h"
#include "tests/server/log/journal/simulated_files.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kNowMs = 1'000;

class DiskLogTest : public testing::Test {
 protected:
  using OnFull = TestStore::OnFull;

  // Starts a server's store and log. The one before is killed.
  absl::Status Start(Journal::Sync sync = Journal::Sync::kInterval, size_t region_bytes = 8 << 20,
                     OnFull on_full = OnFull::kReject, uint64_t first_version = 1) {
    log_ = nullptr;
    store_ =
        std::make_unique<TestStore>(region_bytes, SlotsForSnapshot(&files_).value(), true, on_full);
    auto log = DiskLog::Open({.files = &files_,
                              .store = &**store_,
                              .changes = &store_->changes(),
                              .writes = &store_->writes(),
                              .sync = sync,
                              .segment_bytes = 64 << 10,
                              .first_version = first_version,
                              .clock = [this] { return now_ns_; },
                              .wall = MachineWallTime,
                              .new_number = 77},
                             At(kNowMs));
    if (!log.ok()) return log.status();
    log_ = *std::move(log);
    return absl::OkStatus();
  }
  void Poll(int times = 1) {
    for (int i = 0; i < times; ++i) log_->Poll(now_ns_ += kNsPerMs);
  }
  StatsReply Stats() {
    StatsReply stats = store_->Stats();
    log_->FillStats(&stats);
    return stats;
  }
  StorageReply Storage() {
    StorageReply storage{};
    log_->FillStorage(&storage);
    return storage;
  }
  std::vector<std::string> Names() { return files_.List().value(); }
  void WriteSnapshot() {
    const uint64_t before = Stats().disk_snapshots;
    log_->snapshots().Ask();
    for (int i = 0; i < 1'000 && Stats().disk_snapshots == before; ++i) Poll();
    EXPECT_GT(Stats().disk_snapshots, before);
  }

  SimulatedFiles files_{1};
  int64_t now_ns_ = kNsPerSecond;
  std::unique_ptr<TestStore> store_;
  std::unique_ptr<DiskLog> log_;
};

TEST_F(DiskLogTest, NotesTheClockAlsoWhenNothingIsWritten) {
  ASSERT_EQ(Start(), absl::OkStatus());
  SetClock clock(1'700'000'000'000);
  (*store_)->UseClock(&clock);
  Poll();
  EXPECT_EQ(NotedClock(&files_), clock.Time());
  clock.ms += 1'000;
  now_ns_ += kNsPerSecond;
  Poll();
  EXPECT_EQ(NotedClock(&files_), clock.Time());
  clock.ms += 10;
  EXPECT_EQ(log_->Close(now_ns_), absl::OkStatus());
  EXPECT_EQ(NotedClock(&files_), clock.Time());
  // What is beside the journal is nothing to it.
  ASSERT_EQ(Start(), absl::OkStatus());
}

TEST_F(DiskLogTest, FindsItsItemsAgainFromTheJournal) {
  ASSERT_EQ(Start(), absl::OkStatus());
  const std::string huge(300'000, 'h');
  store_->Put("a", "1", {5, ExpiresAt(9'000)}, {}, At(kNowMs));
  store_->Put("b", huge, {}, {}, At(kNowMs));
  store_->Put("c", "deleted", {}, {}, At(kNowMs));
  store_->Delete("c", kNowMs);
  const WriteOutcome last = store_->Put("d", "2", {}, {}, At(kNowMs));
  ASSERT_TRUE(log_->Close(now_ns_).ok());
  ASSERT_EQ(Start(), absl::OkStatus());
  EXPECT_THAT(log_->restored(), HasSubstr("restored 3 items"));
  EXPECT_EQ(store_->Get("a", kNowMs), "1");
  EXPECT_EQ(store_->Get("b", kNowMs), huge);
  EXPECT_EQ(store_->Get("c", kNowMs), std::nullopt);
  std::array<std::byte, 8> value{};
  const ReadOutcome read = (*store_)->Get("a", value, At(kNowMs));
  EXPECT_EQ(read.attributes.flags, 5u);
  EXPECT_EQ(read.attributes.expiry.ms(), 9'000u);
  EXPECT_GT(store_->Put("e", "3", {}, {}, At(kNowMs)).version, last.version)
      << "a version came again";
}

// A write that waits for the disk is recorded, and the walk does not find it. So the journal is
// needed from that record on.
TEST_F(DiskLogTest, ASnapshotBeginsWhereEverythingIsPublished) {
  std::function<void()> meanwhile = [] {};
  HookedFiles files(&files_, [&meanwhile] { std::exchange(meanwhile, [] {})(); });
  TestStore store(8 << 20);
  auto log = DiskLog::Open({.files = &files,
                            .store = &*store,
                            .changes = &store.changes(),
                            .writes = &store.writes(),
                            .sync = Journal::Sync::kAlways,
                            .segment_bytes = 64 << 10,
                            .clock = [this] { return now_ns_; },
                            .wall = MachineWallTime,
                            .new_number = 77},
                           At(kNowMs));
  ASSERT_TRUE(log.ok()) << log.status();
  const auto put = [&](const std::string& key) {
    return (*log)->waiting()->Put(key, "value", {}, {}, At(kNowMs)).outcome.status;
  };
  ASSERT_EQ(put("early"), ReplyStatus::kOk);
  const uint64_t early = (*log)->appended();
  (*log)->Poll(now_ns_ += kNsPerMs);  // syncs "early"
  store.writes().Publish(store.changes().safe());
  ASSERT_EQ(put("waits"), ReplyStatus::kOk);
  meanwhile = [&] { EXPECT_EQ(put("late"), ReplyStatus::kOk); };
  (*log)->snapshots().Ask();
  (*log)->Poll(now_ns_ += kNsPerMs);  // syncs "waits"; "late" comes meanwhile
  ASSERT_TRUE((*log)->snapshots().writes());
  EXPECT_GT((*log)->appended(), early);
  for (int i = 0; i < 1'000 && (*log)->snapshots().writes(); ++i) (*log)->Poll(now_ns_ += kNsPerMs);
  EXPECT_THAT(Names(), testing::Contains(SnapshotName(early)));
  log->reset();
  ASSERT_EQ(Start(Journal::Sync::kAlways), absl::OkStatus());
  EXPECT_EQ(store_->Get("early", kNowMs), "value");
  EXPECT_EQ(store_->Get("waits", kNowMs), "value");
  EXPECT_EQ(store_->Get("late", kNowMs), "value");
}

TEST_F(DiskLogTest, WaitingWritesDoNotHurryASnapshot) {
  ASSERT_EQ(Start(Journal::Sync::kAlways), absl::OkStatus());
  // More than three steps.
  for (int i = 0; i < 3'000; ++i) {
    log_->waiting()->Put("key" + std::to_string(i), std::string(300, 'v'), {}, {}, At(kNowMs));
  }
  log_->Poll(now_ns_);
  store_->writes().Publish(store_->changes().safe());
  log_->snapshots().Ask();
  log_->Poll(now_ns_);  // begins it
  log_->Poll(now_ns_);  // the first step
  const uint64_t operations = files_.operations();
  for (int i = 0; i < 3; ++i) log_->Poll(now_ns_);
  EXPECT_EQ(files_.operations(), operations) << "more than a step in a millisecond";
  Poll();
  EXPECT_GT(files_.operations(), operations);
}

TEST_F(DiskLogTest, GoesOnAboveTheClocksVersionsAndTheRestoredOnes) {
  ASSERT_TRUE(Start(Journal::Sync::kInterval, 8 << 20, OnFull::kReject, 1'000).ok());
  EXPECT_EQ(store_->Put("a", "1").version, 1'000u);
  ASSERT_TRUE(log_->Close(now_ns_).ok());
  // The clock was set back.
  ASSERT_TRUE(Start(Journal::Sync::kInterval, 8 << 20, OnFull::kReject, 10).ok());
  EXPECT_GT(store_->Put("a", "2").version, 1'000u);
}

TEST_F(DiskLogTest, SyncsAtTheIntervalAndSaysHowFarItIsBehind) {
  ASSERT_EQ(Start(), absl::OkStatus());
  store_->Put("first", "1");
  Poll();  // syncs, since it never did before
  store_->Put("a", "1");
  Poll(500);
  EXPECT_GT(Stats().disk_behind_bytes, 0u);
  EXPECT_NEAR(static_cast<double>(Stats().disk_behind_ms), 500, 1);
  EXPECT_EQ(Stats().disk_sync, 2u);
  Poll(600);
  EXPECT_EQ(Stats().disk_behind_bytes, 0u);
  EXPECT_EQ(Stats().disk_behind_ms, 0u);
  files_.CutPower();
  ASSERT_EQ(Start(), absl::OkStatus());
  EXPECT_EQ(store_->Get("a", kNowMs), "1");
}

// Nobody writes for more than 5 ms.
TEST_F(DiskLogTest, WritesWaitForAMomentWhileEarlierOnesAreNotWritten) {
  ASSERT_EQ(Start(), absl::OkStatus());
  const uint64_t first = store_->Put("a", "1").version;
  now_ns_ += 5 * kNsPerMs;
  ASSERT_EQ(store_->Put("b", "1").status, ReplyStatus::kOk);
  now_ns_ += 1;
  EXPECT_EQ(store_->changes().takes(), ChangeConsumer::Takes::kLater);
  const uint64_t end = store_->changes().end();
  EXPECT_EQ(store_->Put("a", "2").status, ReplyStatus::kDiskRefuses) << "in place";
  EXPECT_EQ(store_->Put("a", "longer").status, ReplyStatus::kDiskRefuses);
  EXPECT_EQ(store_->Put("c", "1").status, ReplyStatus::kDiskRefuses) << "a new key";
  EXPECT_EQ(store_->Delete("a").status, ReplyStatus::kDiskRefuses);
  EXPECT_EQ(store_->changes().end(), end);
  EXPECT_EQ(store_->Get("a"), "1");
  EXPECT_EQ(store_->Get("c"), std::nullopt);
  EXPECT_EQ(Stats().items, 2u);
  EXPECT_EQ(Stats().disk_refused, 0u) << "they were put off";
  EXPECT_EQ(log_->Taking(), absl::OkStatus()) << "the server is ready";
  EXPECT_EQ(log_->Write(), DiskLog::kWritePeriodNs);
  EXPECT_EQ(store_->changes().takes(), ChangeConsumer::Takes::kNow);
  const auto put = store_->Put("a", "2");
  EXPECT_EQ(put.status, ReplyStatus::kOk);
  EXPECT_GT(put.version, first);
  EXPECT_EQ(store_->Put("c", "1").status, ReplyStatus::kOk);
}

TEST_F(DiskLogTest, RefusesWritesOnceTheDiskHasFailed) {
  ASSERT_EQ(Start(), absl::OkStatus());
  store_->Put("a", "1");
  files_.SetFault(SimulatedFiles::Fault::kIoError, files_.operations() + 1);
  Poll();
  EXPECT_EQ(store_->Put("a", "2").status, ReplyStatus::kDiskRefuses);
  EXPECT_EQ(store_->Get("a"), "1") << "it serves on what it has";
  EXPECT_EQ(Stats().disk_refused, 1u);
  EXPECT_EQ(store_->changes().takes(), ChangeConsumer::Takes::kNot);
}

TEST_F(DiskLogTest, RefusesWritesWhileThereIsNoSpace) {
  ASSERT_EQ(Start(), absl::OkStatus());
  store_->Put("a", "1");
  files_.SetFault(SimulatedFiles::Fault::kNoSpace, files_.operations() + 1);
  log_->Write();
  EXPECT_EQ(store_->changes().takes(), ChangeConsumer::Takes::kNot);
  EXPECT_EQ(store_->Put("b", "1").status, ReplyStatus::kDiskRefuses);
  EXPECT_EQ(Stats().disk_refused, 1u);
  for (uint64_t i = 0; i < SimulatedFiles::kNoSpaceFor; ++i) log_->Write();
  EXPECT_EQ(store_->changes().takes(), ChangeConsumer::Takes::kNow);
  EXPECT_EQ(store_->Put("b", "1").status, ReplyStatus::kOk);
}

// Whoever waits is served later, so it is no refusal.
TEST_F(DiskLogTest, TakesWritesLaterWhileTheDiskHangs) {
  ASSERT_EQ(Start(), absl::OkStatus());
  EXPECT_EQ(store_->Put("a", "1").status, ReplyStatus::kOk);
  now_ns_ += 2 * kNsPerSecond + 1;  // nobody polls: the thread waits for the disk
  EXPECT_EQ(store_->Put("b", "1").status, ReplyStatus::kDiskRefuses);
  EXPECT_EQ(store_->changes().takes(), ChangeConsumer::Takes::kLater);
  EXPECT_EQ(Stats().disk_refused, 0u);
  Poll();
  EXPECT_EQ(store_->changes().takes(), ChangeConsumer::Takes::kNow);
  EXPECT_EQ(store_->Put("b", "1").status, ReplyStatus::kOk);
}

TEST_F(DiskLogTest, KeepsTheDirectorySmallByItself) {
  ASSERT_EQ(Start(), absl::OkStatus());
  const std::string value(1'000, 'v');
  constexpr int kItems = 1'000;
  uint64_t most = 0;
  for (int i = 0; i < 40 * kItems; ++i) {
    ASSERT_EQ(store_->Put("key" + std::to_string(i % kItems), value).status, ReplyStatus::kOk);
    if (i % 20 == 0) Poll();
    most = std::max(most, Stats().disk_bytes);
  }
  Poll(200);
  EXPECT_GT(Stats().disk_snapshots, 5u);
  // One snapshot, half of that in the journal, and what the segments' length adds.
  constexpr uint64_t kLive = kItems * 1'100;
  EXPECT_LT(Stats().disk_bytes, 2 * kLive);
  EXPECT_LT(most, 3 * kLive);
  uint64_t bytes = 0;
  for (const std::string& name : Names()) bytes += files_.BytesOf(name)->size();
  EXPECT_NEAR(static_cast<double>(Stats().disk_bytes), static_cast<double>(bytes), 1'000);
  ASSERT_TRUE(log_->Close(now_ns_).ok());
  ASSERT_EQ(Start(), absl::OkStatus());
  EXPECT_EQ(store_->Stats().items, static_cast<uint64_t>(kItems));
}

TEST_F(DiskLogTest, SnapshotsWhileItemsChangeAndTheIndexGrows) {
  ASSERT_TRUE(Start(Journal::Sync::kNone).ok());
  for (int i = 0; i < 3'000; ++i) store_->Put("key" + std::to_string(i), "old");
  log_->snapshots().Ask();
  Poll();
  ASSERT_TRUE(log_->snapshots().writes());
  for (int i = 0; i < 9'000; ++i) {
    store_->Put("key" + std::to_string(i), "new");
    if (i % 3 == 0) store_->Delete("key" + std::to_string(i / 3));
    if (i % 100 == 0) {
      Poll();
      (*store_)->Tidy(At(kNowMs));
    }
  }
  for (int i = 0; i < 1'000 && log_->snapshots().writes(); ++i) {
    Poll();
    (*store_)->Tidy(At(kNowMs));
  }
  ASSERT_FALSE(log_->snapshots().writes());
  ASSERT_TRUE(log_->Close(now_ns_).ok());
  const uint64_t items = store_->Stats().items;
  files_.CutPower();
  ASSERT_EQ(Start(), absl::OkStatus());
  EXPECT_EQ(store_->Stats().items, items);
  EXPECT_EQ(store_->Get("key0", kNowMs), std::nullopt);
  EXPECT_EQ(store_->Get("key8000", kNowMs), "new");
}

TEST_F(DiskLogTest, BringsBackNothingThatWasEvictedWhileItRestored) {
  ASSERT_TRUE(Start(Journal::Sync::kNone, 4 << 20).ok());
  for (int i = 0; i < 1'500; ++i) store_->Put("key" + std::to_string(i), std::string(2'000, 'v'));
  const uint64_t items = store_->Stats().items;
  ASSERT_TRUE(log_->Close(now_ns_).ok());
  // With less memory.
  ASSERT_TRUE(Start(Journal::Sync::kNone, 2 << 20, OnFull::kEvict).ok());
  EXPECT_THAT(log_->restored(), HasSubstr("evicted"));
  const uint64_t fewer = store_->Stats().items;
  EXPECT_LT(fewer, items);
  ASSERT_TRUE(log_->Close(now_ns_).ok());
  // With enough again: what clients saw as gone stays gone.
  ASSERT_TRUE(Start(Journal::Sync::kNone, 8 << 20).ok());
  EXPECT_EQ(store_->Stats().items, fewer);
}

TEST_F(DiskLogTest, SaysThatTheItemsDoNotFit) {
  ASSERT_TRUE(Start(Journal::Sync::kNone, 8 << 20).ok());
  for (int i = 0; i < 2'000; ++i) store_->Put("key" + std::to_string(i), std::string(2'000, 'v'));
  ASSERT_TRUE(log_->Close(now_ns_).ok());
  const absl::Status status = Start(Journal::Sync::kNone, 2 << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("start with more --memory"));
}

TEST_F(DiskLogTest, SaysWhatIsWrongWithADamagedDirectory) {
  ASSERT_EQ(Start(), absl::OkStatus());
  for (int i = 0; i < 100; ++i) store_->Put("key" + std::to_string(i), std::string(1'000, 'v'));
  WriteSnapshot();
  ASSERT_TRUE(log_->Close(now_ns_).ok());
  for (const std::string& name : Names()) {
    if (PositionOfSnapshot(name)) (*files_.BytesOf(name))[5'000] ^= std::byte{1};
  }
  const absl::Status status = Start();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("is damaged at offset"));
}

TEST_F(DiskLogTest, TriesASnapshotAgainAfterOneFailed) {
  ASSERT_EQ(Start(), absl::OkStatus());
  store_->Put("a", "1");
  Poll(1'100);
  log_->snapshots().Ask();
  files_.SetFault(SimulatedFiles::Fault::kIoError, files_.operations() + 2);
  Poll(10);
  EXPECT_EQ(Stats().disk_snapshots, 0u);
  EXPECT_FALSE(log_->snapshots().writes());
  now_ns_ += 61 * kNsPerSecond;
  WriteSnapshot();
}

TEST_F(DiskLogTest, SaysWhatBecameOfTheSnapshotThatWasAskedFor) {
  ASSERT_EQ(Start(), absl::OkStatus());
  store_->Put("a", "1");
  EXPECT_EQ(Storage().bytes, 0u) << "there is none yet";
  EXPECT_EQ(log_->snapshots().Ask(), 1u);
  Poll();
  ASSERT_TRUE(log_->snapshots().writes());
  store_->Put("b", "1");
  EXPECT_EQ(log_->snapshots().Ask(), 2u) << "the first one may be without b";
  for (int i = 0; i < 1'000 && Storage().whole < 2; ++i) Poll();
  EXPECT_EQ(Storage().whole, 2u);
  EXPECT_EQ(Storage().items, 2u);
  EXPECT_GT(Storage().bytes, 0u);
  EXPECT_GT(Storage().position, 0u);
  EXPECT_NE(Storage().completed_ms, 0u);
  EXPECT_EQ(std::string(Storage().directory), files_.path());
  ASSERT_TRUE(log_->Close(now_ns_).ok());
  ASSERT_EQ(Start(), absl::OkStatus());
  EXPECT_EQ(Storage().items, 2u);
  EXPECT_EQ(Storage().whole, 0u);
  EXPECT_EQ(Storage().completed_ms, 0u) << "an earlier run wrote it";
}

TEST_F(DiskLogTest, SaysWhyThereIsNoSnapshot) {
  ASSERT_EQ(Start(), absl::OkStatus());
  store_->Put("a", "1");
  Poll(1'100);
  EXPECT_EQ(log_->snapshots().Ask(), 1u);
  files_.SetFault(SimulatedFiles::Fault::kIoError, files_.operations() + 2);
  Poll(10);
  EXPECT_EQ(Storage().ended, 1u);
  EXPECT_EQ(Storage().whole, 0u);
  EXPECT_NE(std::string(Storage().why_not), "");
  WriteSnapshot();  // whoever asks need not wait for the minute that follows a failure
  EXPECT_EQ(Storage().whole, 2u);
}

TEST_F(DiskLogTest, AFailedDiskEndsTheSnapshotsThatAreAskedFor) {
  ASSERT_EQ(Start(), absl::OkStatus());
  store_->Put("a", "1");
  log_->snapshots().Ask();
  files_.SetFault(SimulatedFiles::Fault::kIoError, files_.operations() + 1);
  Poll(10);
  EXPECT_EQ(Storage().ended, 1u);
  EXPECT_EQ(log_->snapshots().Ask(), 2u);
  Poll(10);
  EXPECT_EQ(Storage().ended, 2u);
  EXPECT_EQ(Storage().whole, 0u);
}

TEST_F(DiskLogTest, ReadsADirectoryWithoutChangingIt) {
  ASSERT_EQ(Start(), absl::OkStatus());
  store_->Put("a", "1");
  WriteSnapshot();
  store_->Put("b", "1");
  ASSERT_TRUE(log_->Close(now_ns_).ok());
  const auto names = Names();
  int changes = 0;
  const auto count = [&](const Change&) {
    ++changes;
    return absl::OkStatus();
  };
  const auto read = ReadDirectory(&files_, count);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->snapshot_items, 1u);
  EXPECT_EQ(read->journal_changes, 1u);
  EXPECT_EQ(changes, 2);
  EXPECT_EQ(Names(), names);
  SimulatedFiles empty(1);
  EXPECT_TRUE(absl::IsNotFound(ReadDirectory(&empty, count).status()));
}

}  // namespace
}  // namespace gannet
