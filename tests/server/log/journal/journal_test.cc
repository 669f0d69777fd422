#include "server/log/journal/journal.h"

#include <array>
#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/changes/record.h"
#include "server/log/changes/update_lane_inline.h"
#include "server/log/journal/read_journal.h"
#include "server/log/journal/segment.h"
#include "tests/server/log/journal/hooked_files.h"
#include "tests/server/log/journal/simulated_files.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kJournal = 77;
constexpr uint64_t kSegmentBytes = 1000;
constexpr int64_t kInterval = kNsPerSecond;

class JournalTest : public testing::Test {
 protected:
  std::unique_ptr<Journal> Open(Journal::Sync sync, uint64_t position = 0,
                                size_t waiting_bytes_max = 2000) {
    auto journal = Journal::Create({.files = &hooked_files_,
                                    .journal_id = kJournal,
                                    .position = position,
                                    .sync = sync,
                                    .sync_interval_ns = kInterval,
                                    .segment_bytes = kSegmentBytes,
                                    .waiting_bytes_max = waiting_bytes_max});
    EXPECT_TRUE(journal.ok()) << journal.status();
    return *std::move(journal);
  }
  std::optional<uint64_t> Append(Journal* journal, const std::string& key,
                                 const std::string& value = "") {
    return journal->Append({.version = 1, .key = key, .value = value}, now_ns_);
  }
  // Returns the keys of all changes, or the error. `cut`: as a start of the server finds them.
  absl::StatusOr<std::vector<std::string>> Keys(uint64_t from = 0, uint64_t journal = kJournal,
                                                bool cut = true) {
    std::vector<std::string> keys;
    const auto end =
        ReadJournal({.files = &files_, .journal_id = journal, .from = from, .cut = cut},
                    [&](const Change& change) {
                      keys.emplace_back(change.key);
                      return absl::OkStatus();
                    });
    if (!end.ok()) return end.status();
    end_ = *end;
    return keys;
  }
  // Appends `n` records of 200 bytes, and flushes after each.
  void Fill(Journal* journal, int n) {
    for (int i = 0; i < n; ++i) {
      ASSERT_TRUE(Append(journal, "key" + std::to_string(i), std::string(124, 'v')));
      journal->Flush(now_ns_);
    }
  }

  SimulatedFiles files_{1};
  std::function<void()> before_sync_ = [] {};
  HookedFiles hooked_files_{&files_, [this] { before_sync_(); }};
  JournalEnd end_;
  int64_t now_ns_ = kNsPerSecond;
};

TEST_F(JournalTest, BeginsWithoutSpaceAndTakesChangesOnceThereIsSome) {
  files_.SetFault(SimulatedFiles::Fault::kNoSpace, files_.operations() + 3);  // takes the space
  const auto journal = Open(Journal::Sync::kAlways);
  EXPECT_TRUE(absl::IsResourceExhausted(journal->Taking(now_ns_))) << journal->Taking(now_ns_);
  EXPECT_FALSE(Append(journal.get(), "refused"));
  for (uint64_t i = 0; i < SimulatedFiles::kNoSpaceFor; ++i) journal->Flush(now_ns_);
  EXPECT_EQ(journal->Taking(now_ns_), absl::OkStatus());
  EXPECT_TRUE(Append(journal.get(), "taken"));
  journal->Flush(now_ns_);
  EXPECT_THAT(Keys().value(), ElementsAre("taken"));
}

TEST_F(JournalTest, FailsWithinASecondOnceItsSegmentIsGone) {
  const auto journal = Open(Journal::Sync::kAlways);
  journal->Flush(now_ns_);
  EXPECT_TRUE(Append(journal.get(), "a"));
  ASSERT_TRUE(files_.Remove(SegmentName(0)).ok());
  journal->Flush(now_ns_ += kNsPerSecond);
  EXPECT_TRUE(journal->failed());
  EXPECT_FALSE(Append(journal.get(), "b"));
  EXPECT_THAT(std::string(journal->status().message()), HasSubstr("was removed or renamed"));
}

TEST_F(JournalTest, KeepsNothingBeforeASyncAndAllAfterIt) {
  auto journal = Open(Journal::Sync::kAlways);
  const auto position = Append(journal.get(), "a");
  ASSERT_TRUE(position.has_value());
  EXPECT_EQ(journal->synced(), 0u);
  journal->Flush(now_ns_);
  EXPECT_EQ(journal->synced(), *position);
  files_.CutPower();
  EXPECT_THAT(*Keys(), ElementsAre("a"));
  EXPECT_EQ(end_.position, *position);
}

// Whatever lies between them.
TEST_F(JournalTest, UpdatesOfALaneAreReadAsOtherChangesAre) {
  auto journal = Open(Journal::Sync::kAlways, 0, 1 << 20);
  std::vector<std::string> expected;
  std::array<std::byte, 64 << 10> memory;
  UpdateLane lane;
  uint64_t end = 0;
  for (int i = 0; i < 50; ++i) {
    end = *Append(journal.get(), "between" + std::to_string(i));
    expected.push_back("between" + std::to_string(i) + "=");
    lane.Begin(end);
    lane.UseMemory(memory);
    for (int j = 0; j < i % 7 + 1; ++j) {
      const std::string key = "k" + std::string(j * i % 60, 'k') + std::to_string(j);
      const std::string value((i * 131 + j * 17) % 900, static_cast<char>('a' + j));
      ASSERT_NE(lane.Append({.version = 9,
                             .flags = 3,
                             .key = key,
                             .value = value,
                             .session_token = 5,
                             .sequence = 6}),
                nullptr);
      expected.push_back(key + "=" + value);
    }
    lane.Seal();
    end = journal->AppendUpdates(lane, now_ns_);
    ASSERT_EQ(end, lane.position());
    if (i % 5 == 0) journal->Flush(now_ns_);
  }
  journal->Flush(now_ns_);
  std::vector<std::string> read;
  const auto take = [&](const Change& change) {
    read.push_back(std::string(change.key) + "=" + std::string(change.value));
    if (!change.key.starts_with("between")) {
      EXPECT_EQ(change.version, 9u);
      EXPECT_EQ(change.flags, 3u);
      EXPECT_EQ(change.session_token, 5u);
      EXPECT_EQ(change.sequence, 6u);
      EXPECT_EQ(change.opcode, static_cast<uint8_t>(Opcode::kPut));
    }
    return absl::OkStatus();
  };
  const auto found = ReadJournal({.files = &files_, .journal_id = kJournal, .from = 0}, take);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->position, end);
  EXPECT_EQ(read, expected);
}

TEST_F(JournalTest, OneSyncServesAllThatWait) {
  auto journal = Open(Journal::Sync::kAlways);
  Append(journal.get(), "first");  // writes zeros behind it
  journal->Flush(now_ns_);
  const uint64_t before = files_.operations();
  for (int i = 0; i < 10; ++i) Append(journal.get(), "key");
  journal->Flush(now_ns_);
  EXPECT_EQ(journal->synced(), journal->appended());
  EXPECT_EQ(files_.operations() - before, 2u) << "a write and a sync";
}

TEST_F(JournalTest, WritesZerosAheadOnceForManySyncs) {
  for (const auto sync : {Journal::Sync::kAlways, Journal::Sync::kInterval}) {
    files_ = SimulatedFiles(1);
    auto journal = Open(sync);
    std::vector<uint64_t> operations;
    for (int i = 0; i < 3; ++i) {
      const uint64_t before = files_.operations();
      Append(journal.get(), "key");
      journal->Flush(now_ns_ += kInterval);
      operations.push_back(files_.operations() - before);
    }
    EXPECT_THAT(operations, ElementsAre(sync == Journal::Sync::kAlways ? 3 : 2, 2, 2));
    EXPECT_THAT(*Keys(), ElementsAre("key", "key", "key"));
    EXPECT_EQ(end_.torn_bytes, 0u) << "the zeros count as nothing";
  }
}

TEST_F(JournalTest, SyncsOnceInAnInterval) {
  auto journal = Open(Journal::Sync::kInterval);
  Append(journal.get(), "a");
  journal->Flush(now_ns_);
  const uint64_t first = journal->synced();
  EXPECT_EQ(first, journal->appended());
  Append(journal.get(), "b");
  journal->Flush(now_ns_ += kInterval / 2);
  EXPECT_EQ(journal->synced(), first);
  EXPECT_EQ(journal->sync_due_ns(), now_ns_ + kInterval / 2);
  journal->Flush(now_ns_ += kInterval / 2);
  EXPECT_EQ(journal->synced(), journal->appended());
  EXPECT_EQ(journal->sync_due_ns(), std::nullopt);
  EXPECT_EQ(journal->unsynced_since_ns(), 0);
}

TEST_F(JournalTest, SyncsEverythingInEveryModeWhenAsked) {
  auto journal = Open(Journal::Sync::kNone);
  Append(journal.get(), "a");
  journal->Flush(now_ns_);
  EXPECT_EQ(journal->synced(), 0u);
  EXPECT_TRUE(journal->SyncAll(now_ns_).ok());
  files_.CutPower();
  EXPECT_THAT(*Keys(), ElementsAre("a"));
}

TEST_F(JournalTest, WritesWhatWaitedOnceThereIsSpaceAgain) {
  auto journal = Open(Journal::Sync::kAlways);
  files_.SetFault(SimulatedFiles::Fault::kNoSpace, files_.operations() + 1);
  Append(journal.get(), "a");
  journal->Flush(now_ns_);
  EXPECT_TRUE(absl::IsResourceExhausted(journal->status())) << journal->status();
  EXPECT_FALSE(journal->failed());
  EXPECT_EQ(journal->synced(), 0u);
  EXPECT_FALSE(Append(journal.get(), "b")) << "it could not be kept";
  EXPECT_EQ(journal->Taking(now_ns_), journal->status());
  for (uint64_t i = 0; i < SimulatedFiles::kNoSpaceFor + 1 && !journal->status().ok(); ++i) {
    journal->Flush(now_ns_);
  }
  EXPECT_TRUE(Append(journal.get(), "b"));
  journal->Flush(now_ns_);
  EXPECT_EQ(journal->synced(), journal->appended());
  EXPECT_THAT(*Keys(), ElementsAre("a", "b"));
}

TEST_F(JournalTest, RefusesChangesWhenTheDiskIsTooFarBehind) {
  auto journal = Open(Journal::Sync::kInterval);
  Append(journal.get(), "a");
  journal->Write();
  now_ns_ += 2 * kInterval;
  EXPECT_TRUE(journal->Taking(now_ns_).ok()) << "there is room for what waits";
  EXPECT_TRUE(Append(journal.get(), "b").has_value());
  EXPECT_FALSE(Append(journal.get(), "c", std::string(2000, 'v')) &&
               Append(journal.get(), "too much waits"));
  now_ns_ += kNsPerMs;
  EXPECT_FALSE(Append(journal.get(), "too late").has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(journal->Taking(now_ns_)));
  EXPECT_TRUE(journal->status().ok());
  for (int i = 0; i < 2; ++i) journal->Flush(now_ns_);
  EXPECT_TRUE(Append(journal.get(), "d").has_value());
}

TEST_F(JournalTest, CountsWhatIsBeingWrittenAsWaiting) {
  auto journal = Open(Journal::Sync::kInterval);
  ASSERT_TRUE(Append(journal.get(), "much", std::string(2000, 'v')));
  files_.SetFault(SimulatedFiles::Fault::kNoSpace, files_.operations() + 1);
  journal->Write();  // takes it from what waits, and cannot write it
  ASSERT_FALSE(journal->status().ok());
  files_.SetFault(SimulatedFiles::Fault::kNone, 0);
  EXPECT_FALSE(Append(journal.get(), "more"));
  journal->Write();
  EXPECT_TRUE(Append(journal.get(), "more"));
}

// Whatever a sync is for: a file's content, a new segment, or its name.
TEST_F(JournalTest, WritesWhileASyncTakesLong) {
  for (const auto sync : {Journal::Sync::kNone, Journal::Sync::kInterval, Journal::Sync::kAlways}) {
    files_ = SimulatedFiles(1);
    auto journal = Open(sync);
    std::vector<std::string> appended;
    const auto append = [&] {
      appended.push_back("key" + std::to_string(appended.size()));
      ASSERT_TRUE(Append(journal.get(), appended.back(), std::string(123, 'v')));
    };
    int syncs = 0;
    before_sync_ = [&] {
      ++syncs;
      append();
      journal->Write();
      EXPECT_EQ(journal->written(), journal->appended());
      const auto keys = Keys(0, kJournal, /*cut=*/false);
      ASSERT_TRUE(keys.ok()) << keys.status();
      EXPECT_EQ(*keys, appended) << "what a kill -9 would leave during sync " << syncs;
    };
    for (int i = 0; i < 20; ++i) {
      append();
      journal->Flush(now_ns_ += kInterval);
    }
    before_sync_ = [] {};
    EXPECT_GE(syncs, 9) << "three for each new segment";
    EXPECT_GE(files_.List()->size(), 4u);
    ASSERT_TRUE(journal->SyncAll(now_ns_).ok());
    uint64_t bytes = 0;
    const std::vector<std::string> names = files_.List().value();
    for (const std::string& name : names) bytes += files_.BytesOf(name)->size();
    EXPECT_EQ(journal->disk_bytes(), bytes);
    files_.CutPower();
    EXPECT_EQ(*Keys(), appended);
  }
}

TEST_F(JournalTest, KnowsHowOldTheOldestChangeIsThatCameDuringASync) {
  auto journal = Open(Journal::Sync::kAlways);
  Append(journal.get(), "a");
  bool first = true;
  before_sync_ = [&] {
    if (!std::exchange(first, false)) return;
    now_ns_ += 5;
    Append(journal.get(), "b");
    journal->Write();
    now_ns_ += 5;
    Append(journal.get(), "c");
  };
  const int64_t began_ns = now_ns_;
  journal->Flush(began_ns);
  EXPECT_EQ(journal->unsynced_since_ns(), began_ns + 5) << "b is written, and not synced";
  journal->Flush(now_ns_);
  EXPECT_EQ(journal->unsynced_since_ns(), 0);
}

TEST_F(JournalTest, AFailedSyncIsTheReasonAlsoIfThereIsNoSpace) {
  auto journal = Open(Journal::Sync::kAlways);
  files_.SetFault(SimulatedFiles::Fault::kNoSpace, files_.operations() + 3);
  before_sync_ = [&] { files_.SetFault(SimulatedFiles::Fault::kSyncFails, 1); };
  // The segment is full. There is no room for the next one, and the sync fails.
  ASSERT_TRUE(Append(journal.get(), "key", std::string(kSegmentBytes, 'v')));
  journal->Flush(now_ns_);
  EXPECT_TRUE(journal->failed());
  EXPECT_THAT(journal->status().message(), HasSubstr("sync failed"));
}

TEST_F(JournalTest, IsOverAfterAFailedSync) {
  auto journal = Open(Journal::Sync::kAlways);
  Append(journal.get(), "a");
  journal->Flush(now_ns_);
  const uint64_t synced = journal->synced();
  files_.SetFault(SimulatedFiles::Fault::kSyncFails, files_.operations() + 1);
  Append(journal.get(), "b");
  journal->Flush(now_ns_);
  EXPECT_TRUE(journal->failed());
  EXPECT_THAT(journal->status().message(), HasSubstr("sync failed"));
  journal->Flush(now_ns_ += kNsPerSecond);
  EXPECT_EQ(journal->synced(), synced) << "tried again";
  EXPECT_THAT(journal->Taking(now_ns_).message(), HasSubstr("sync failed"));
  EXPECT_FALSE(Append(journal.get(), "c").has_value());
}

TEST_F(JournalTest, GoesOnInNewSegmentsAndRemovesOldOnes) {
  auto journal = Open(Journal::Sync::kAlways);
  Fill(journal.get(), 12);
  EXPECT_EQ(files_.List()->size(), 3u) << "segments of five records";
  EXPECT_THAT(*Keys(/*from=*/2000), ElementsAre("key10", "key11"));
  ASSERT_TRUE(journal->Trim(1999).ok());
  EXPECT_THAT(*files_.List(), ElementsAre(SegmentName(1000), SegmentName(2000)));
  EXPECT_THAT(*Keys(/*from=*/1800), ElementsAre("key9", "key10", "key11"));
  EXPECT_THAT(Keys(/*from=*/0).status().message(), HasSubstr("begins at 1000"));
  EXPECT_EQ(journal->disk_bytes(), 2 * (kSegmentHeaderBytes + kSegmentBytes));
}

TEST_F(JournalTest, GoesOnBehindATornEnd) {
  auto journal = Open(Journal::Sync::kAlways);
  Fill(journal.get(), 2);
  // Half of a record reached the disk.
  std::vector<std::byte>& bytes = *files_.BytesOf(SegmentName(0));
  for (size_t i = 0; i < 100; ++i) bytes[kSegmentHeaderBytes + 400 + i] = std::byte{7};
  EXPECT_THAT(*Keys(), ElementsAre("key0", "key1"));
  EXPECT_EQ(end_.torn_bytes, 104u) << "whole words";
  journal = Open(Journal::Sync::kAlways, end_.position);
  Append(journal.get(), "later");
  journal->Flush(now_ns_);
  EXPECT_THAT(*Keys(), ElementsAre("key0", "key1", "later"));
}

TEST_F(JournalTest, RefusesADamagedRecordThatWasOnDisk) {
  auto journal = Open(Journal::Sync::kAlways);
  Fill(journal.get(), 3);
  // The record behind it was made when this one was synced.
  (*files_.BytesOf(SegmentName(0)))[kSegmentHeaderBytes + 300] ^= std::byte{1};
  const absl::Status status = Keys().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(SegmentName(0) + " is damaged at offset 264"));
}

// Every record that is left is whole, so only the file's length tells.
TEST_F(JournalTest, RefusesALastSegmentWhoseEndWasCutOff) {
  auto journal = Open(Journal::Sync::kAlways);
  Fill(journal.get(), 3);
  std::vector<std::byte>& bytes = *files_.BytesOf(SegmentName(0));
  const size_t made = bytes.size();
  bytes.resize(kSegmentHeaderBytes + 400);
  const absl::Status status = Keys().status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr(SegmentName(0) + " has 464 bytes, and had 1064 before"));
  EXPECT_THAT(status.message(), HasSubstr("truncate -s 1064 "));
  bytes.resize(made);  // as the message says
  EXPECT_THAT(*Keys(), ElementsAre("key0", "key1"));
}

TEST_F(JournalTest, ASegmentWhoseSpaceWasGivenBackIsWhole) {
  auto journal = Open(Journal::Sync::kAlways);
  Fill(journal.get(), 3);
  EXPECT_EQ(Keys()->size(), 3u);
  EXPECT_EQ(files_.BytesOf(SegmentName(0))->size(), kSegmentHeaderBytes + 600);
  files_.CutPower();
  EXPECT_EQ(Keys()->size(), 3u);
  files_.BytesOf(SegmentName(0))->pop_back();
  EXPECT_TRUE(absl::IsDataLoss(Keys().status()));
}

TEST_F(JournalTest, ABatchLongerThanASegmentMakesItsFileLonger) {
  auto journal = Open(Journal::Sync::kAlways);
  const std::string lengthy(3 * kSegmentBytes, 'v');
  ASSERT_TRUE(Append(journal.get(), "long", lengthy));
  journal->Flush(now_ns_);
  const std::vector<std::byte>& bytes = *files_.BytesOf(SegmentName(0));
  EXPECT_EQ(bytes.size(), kSegmentHeaderBytes + RecordBytes(4, lengthy.size()));
  EXPECT_EQ(FileBytesOf(std::span(bytes).first<kSegmentHeaderBytes>()),
            kSegmentHeaderBytes + kSegmentBytes);
  EXPECT_THAT(*files_.List(), ElementsAre(SegmentName(0), SegmentName(journal->appended())));
  EXPECT_EQ(journal->disk_bytes(), bytes.size() + kSegmentHeaderBytes + kSegmentBytes);
  EXPECT_THAT(*Keys(), ElementsAre("long"));
}

// What is reserved and not filled yet holds back what is behind it, and nothing before it.
TEST_F(JournalTest, WritesUpToTheFirstRecordThatIsStillBeingFilled) {
  auto journal = Open(Journal::Sync::kAlways, 0, 1 << 20);
  const std::string large(300'000, 'l');  // more than a chunk, so it has one of its own
  const Change change{.version = 1, .key = "large", .value = large};
  const auto before = Append(journal.get(), "before");
  const auto place = journal->Reserve(RecordBytes(5, large.size()), now_ns_);
  ASSERT_TRUE(before && place);
  journal->Flush(now_ns_);
  const auto behind = Append(journal.get(), "behind");
  ASSERT_TRUE(behind);
  for (int i = 0; i < 3; ++i) journal->Flush(now_ns_);
  EXPECT_EQ(journal->synced(), *before);
  EXPECT_THAT(*Keys(), ElementsAre("before"));
  journal->Fill(change, *place);
  for (int i = 0; i < 2; ++i) journal->Flush(now_ns_);
  EXPECT_EQ(journal->synced(), *behind);
  EXPECT_THAT(*Keys(), ElementsAre("before", "large", "behind"));
}

TEST_F(JournalTest, ThreadsFillTheirRecordsAtTheSameTime) {
  constexpr int kThreads = 3, kRecords = 50;
  auto journal = Open(Journal::Sync::kAlways);
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRecords;) {
        const std::string key = std::to_string(t) + "." + std::to_string(i);
        // It refuses while too much waits.
        if (Append(journal.get(), key, std::string(i % 7 * 1000, 'v'))) ++i;
      }
      running.fetch_sub(1);
    });
  }
  while (running.load() > 0) journal->Flush(now_ns_);
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(journal->SyncAll(now_ns_).ok());
  EXPECT_EQ(journal->synced(), journal->appended());
  std::vector<int> next(kThreads, 0);
  const auto keys = Keys();
  ASSERT_TRUE(keys.ok()) << keys.status();
  for (const std::string& key : *keys) {
    const int t = key[0] - '0';
    EXPECT_EQ(key, std::to_string(t) + "." + std::to_string(next[t]++));
  }
  EXPECT_THAT(next, testing::Each(kRecords));
}

TEST_F(JournalTest, RefusesDamageInAnEarlierSegment) {
  auto journal = Open(Journal::Sync::kAlways);
  Fill(journal.get(), 7);
  (*files_.BytesOf(SegmentName(0)))[kSegmentHeaderBytes + 999] ^= std::byte{1};
  EXPECT_TRUE(absl::IsDataLoss(Keys().status()));
}

TEST_F(JournalTest, RefusesMissingAndForeignSegments) {
  auto journal = Open(Journal::Sync::kAlways);
  Fill(journal.get(), 12);
  EXPECT_THAT(Keys(0, kJournal + 1).status().message(), HasSubstr("another server's"));
  ASSERT_TRUE(files_.Remove(SegmentName(1000)).ok());
  EXPECT_TRUE(absl::IsDataLoss(Keys().status()));
  for (const uint64_t first : {0, 2000}) ASSERT_TRUE(files_.Remove(SegmentName(first)).ok());
  EXPECT_THAT(Keys(/*from=*/400).status().message(), HasSubstr("has no segment"));
  EXPECT_TRUE(Keys()->empty()) << "a new directory";
}

TEST_F(JournalTest, RefusesASegmentWithADamagedHeader) {
  auto journal = Open(Journal::Sync::kAlways);
  Fill(journal.get(), 7);
  (*files_.BytesOf(SegmentName(1000)))[20] ^= std::byte{1};
  EXPECT_THAT(Keys().status().message(), HasSubstr("damaged header"));
}

}  // namespace
}  // namespace gannet
