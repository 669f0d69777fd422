#include "server/memory/tier/tier_writer.h"

#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/base/wake_up.h"
#include "gtest/gtest.h"
#include "server/memory/tier/tier_thread.h"
#include "tests/server/memory/tier/bad_disk.h"
#include "tests/server/memory/tier/some_tier.h"

namespace gannet {
namespace {

using Did = TierWriter::Did;
using Disk = TierWriter::Disk;

constexpr int64_t kNow = 1000 * kNsPerSecond;

// Values of ascending versions, and the stubs that were made of them.
class SomeItems : public TierItems {
 public:
  std::optional<TierRecord> NextToWrite() override {
    MutexLock lock(mutex_);
    if (wanted_ == 0) return std::nullopt;
    --wanted_;
    key_ = SomeKey(++version_);
    value_ = SomeValue(version_);
    return TierRecord{.key = key_, .value = value_, .hash = version_, .version = version_};
  }
  void Written(uint64_t hash, const TierPlace& place) override {
    MutexLock lock(mutex_);
    EXPECT_EQ(hash, place.version);
    stubs_[hash] = place;
  }
  void NotWritten(const TierPlace& place) override {
    MutexLock lock(mutex_);
    not_written_.push_back(place.version);
  }
  void Forget(const TierCircle::Segment& segment, TierCircle* /*circle*/) override {
    MutexLock lock(mutex_);
    ++forgets_;
    std::erase_if(stubs_, [&segment](const auto& stub) {
      return stub.second.position >= segment.begin && stub.second.position < segment.end;
    });
  }

  void Want(int n) {
    MutexLock lock(mutex_);
    wanted_ = n;
  }
  std::map<uint64_t, TierPlace> stubs() {
    MutexLock lock(mutex_);
    return stubs_;
  }
  std::vector<uint64_t> not_written() {
    MutexLock lock(mutex_);
    return not_written_;
  }
  int forgets() {
    MutexLock lock(mutex_);
    return forgets_;
  }

 private:
  Mutex mutex_;
  int wanted_ = 0;
  uint64_t version_ = 0;
  int forgets_ = 0;
  std::vector<uint64_t> not_written_;
  std::string key_;
  std::string value_;
  std::map<uint64_t, TierPlace> stubs_;
};

class TierWriterTest : public testing::Test {
 protected:
  // Polls until there is nothing to do.
  Did PollAll(int64_t now_ns = kNow) {
    Did did = writer_.Poll(now_ns);
    while (did == Did::kWorked) did = writer_.Poll(now_ns);
    return did;
  }

  BadDisk disk_{kSomeTierBytes};
  TierCircle circle_{SomeOptions(&disk_)};
  SomeItems items_;
  TierWriter writer_{&circle_, &items_};
};

TEST_F(TierWriterTest, DoesNothingWithoutValues) {
  EXPECT_EQ(writer_.Poll(kNow), Did::kNothing);
  EXPECT_EQ(disk_.bytes_written(), 0u);
}

TEST_F(TierWriterTest, WritesAheadThroughAllSegmentsAndOverTheOldest) {
  items_.Want(18);
  EXPECT_EQ(PollAll(), Did::kNothing);
  EXPECT_EQ(writer_.records_written(), 18u);
  EXPECT_EQ(writer_.segments_taken(), 5u);
  const auto stubs = items_.stubs();
  EXPECT_EQ(stubs.size(), 14u);  // four segments of four, of which one has two
  for (const auto& [version, place] : stubs) {
    EXPECT_GT(version, 4u);
    EXPECT_EQ(*ReadFrom(&circle_, place, SomeKey(version)), SomeValue(version));
  }
}

TEST_F(TierWriterTest, TellsOfARecordOnlyWhenItIsWritten) {
  items_.Want(1);
  EXPECT_EQ(writer_.Poll(kNow), Did::kWorked);  // takes a segment
  disk_.HoldWrites(true);
  std::thread thread([this] { PollAll(); });
  disk_.AwaitHeld(1);
  EXPECT_TRUE(items_.stubs().empty());
  disk_.HoldWrites(false);
  thread.join();
  EXPECT_EQ(items_.stubs().size(), 1u);
}

TEST_F(TierWriterTest, WaitsForReadsOfTheOldestSegment) {
  items_.Want(16);
  PollAll();
  const TierPlace read = items_.stubs().begin()->second;
  ASSERT_TRUE(circle_.Pin(read));
  items_.Want(1);
  EXPECT_EQ(PollAll(), Did::kWaits);
  EXPECT_EQ(writer_.Poll(kNow), Did::kWaits);
  const int forgets = items_.forgets();
  circle_.Unpin(read);
  EXPECT_EQ(PollAll(), Did::kNothing);
  EXPECT_EQ(writer_.records_written(), 17u);
  EXPECT_EQ(items_.forgets(), forgets);  // once a segment
}

TEST_F(TierWriterTest, StopsForGoodWhenTheDiskFails) {
  items_.Want(1);
  PollAll();
  disk_.SetWrites(BadDisk::Write::kFails);
  items_.Want(2);
  EXPECT_EQ(PollAll(), Did::kNothing);
  EXPECT_EQ(writer_.disk(kNow), Disk::kFailed);
  EXPECT_EQ(writer_.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(writer_.records_dropped(), 2u);
  disk_.SetWrites(BadDisk::Write::kDone);
  items_.Want(1);
  EXPECT_EQ(PollAll(kNow + 100 * kNsPerSecond), Did::kNothing);
  EXPECT_EQ(items_.stubs().size(), 1u);
  EXPECT_TRUE(ReadFrom(&circle_, items_.stubs()[1], SomeKey(1)).ok());
}

TEST_F(TierWriterTest, GoesOnWhenThereIsSpaceAgain) {
  disk_.SetWrites(BadDisk::Write::kNoSpace);
  items_.Want(1);
  EXPECT_EQ(PollAll(), Did::kNothing);
  EXPECT_EQ(writer_.disk(kNow), Disk::kFull);
  EXPECT_TRUE(absl::IsResourceExhausted(writer_.status()));
  disk_.SetWrites(BadDisk::Write::kDone);
  items_.Want(1);
  EXPECT_EQ(PollAll(kNow + TierWriter::kFullNs - 1), Did::kNothing);
  EXPECT_TRUE(items_.stubs().empty());
  EXPECT_EQ(PollAll(kNow + TierWriter::kFullNs), Did::kNothing);
  EXPECT_EQ(items_.stubs().size(), 2u);
  EXPECT_EQ(writer_.disk(kNow), Disk::kWorks);
  EXPECT_TRUE(writer_.status().ok());
}

TEST_F(TierWriterTest, SaysWhatWasNotWritten) {
  items_.Want(1);
  EXPECT_EQ(PollAll(), Did::kNothing);
  EXPECT_TRUE(items_.not_written().empty());
  disk_.SetWrites(BadDisk::Write::kNoSpace);
  items_.Want(1);
  EXPECT_EQ(PollAll(), Did::kNothing);
  EXPECT_EQ(items_.stubs().size(), 1u);
  EXPECT_EQ(items_.not_written(), std::vector<uint64_t>{2});
}

TEST_F(TierWriterTest, SaysThatAWriteIsSlow) {
  items_.Want(1);
  disk_.HoldWrites(true);
  std::thread thread([this] { PollAll(); });
  disk_.AwaitHeld(1);
  EXPECT_EQ(writer_.disk(kNow + TierWriter::kSlowNs - 1), Disk::kWorks);
  EXPECT_EQ(writer_.disk(kNow + TierWriter::kSlowNs), Disk::kSlow);
  disk_.HoldWrites(false);
  thread.join();
  EXPECT_EQ(writer_.disk(kNow + TierWriter::kSlowNs), Disk::kWorks);
}

TEST_F(TierWriterTest, AThreadWritesWhenItIsAsked) {
  const auto wanted = WakeUp::Create();
  ASSERT_TRUE(wanted.ok());
  const auto thread = TierThread::Start(&writer_, wanted->get());
  ASSERT_TRUE(thread.ok());
  disk_.HoldWrites(true);
  items_.Want(8);
  (*wanted)->Ask();
  disk_.AwaitHeld(1);
  disk_.HoldWrites(false);
  while (writer_.records_written() < 8) std::this_thread::yield();
  EXPECT_EQ(writer_.records_written(), 8u);
}

}  // namespace
}  // namespace gannet
