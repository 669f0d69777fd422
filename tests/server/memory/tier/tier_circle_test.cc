#include "server/memory/tier/tier_circle.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/memory/tier/bad_disk.h"
#include "tests/server/memory/tier/some_tier.h"

namespace gannet {
namespace {

class TierCircleTest : public testing::Test {
 protected:
  // Another process goes on with the same disk.
  void Restart(std::vector<uint32_t> laps) {
    circle_ = std::make_unique<TierCircle>(SomeOptions(&disk_, std::move(laps)));
  }
  std::optional<TierPlace> Add(uint64_t version) {
    key_ = SomeKey(version);
    value_ = SomeValue(version);
    return circle_->Add({.key = key_, .value = value_, .hash = version * 1000, .version = version});
  }
  // Writes so many records of versions from `first` on into a segment that it takes.
  std::vector<TierPlace> FillSegment(uint64_t first, int n) {
    std::vector<TierPlace> places;
    EXPECT_TRUE(circle_->TakeOldest().value());
    for (int i = 0; i < n; ++i) {
      const std::optional<TierPlace> place = Add(first + i);
      EXPECT_TRUE(place);
      if (place) places.push_back(*place);
    }
    EXPECT_TRUE(circle_->Write().ok());
    return places;
  }
  absl::StatusOr<std::string> Read(const TierPlace& place) {
    return ReadFrom(circle_.get(), place, SomeKey(place.version));
  }

  BadDisk disk_{kSomeTierBytes};
  std::unique_ptr<TierCircle> circle_ = std::make_unique<TierCircle>(SomeOptions(&disk_));
  std::string key_;
  std::string value_;
};

TEST_F(TierCircleTest, HasNoRoomBeforeASegmentIsTaken) {
  EXPECT_FALSE(Add(1));
  ASSERT_TRUE(circle_->TakeOldest().value());
  EXPECT_TRUE(Add(1));
}

TEST_F(TierCircleTest, GivesBackWhatWasWritten) {
  const std::vector<TierPlace> places = FillSegment(1, 4);
  for (const TierPlace& place : places) {
    const auto value = Read(place);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, SomeValue(place.version));
  }
}

TEST_F(TierCircleTest, LeavesRoomForTheListOfASegment) {
  FillSegment(1, 4);
  EXPECT_FALSE(Add(5));
  ASSERT_TRUE(circle_->Seal().ok());
  for (uint64_t version = 1; version <= 4; ++version) {
    const TierPlace place{
        .position = kTierBlockBytes + (version - 1) * TierRecordBytes(4, SomeValue(1).size()),
        .lap = 1,
        .value_bytes = static_cast<uint32_t>(SomeValue(1).size()),
        .version = version};
    EXPECT_TRUE(Read(place).ok());
  }
}

TEST_F(TierCircleTest, GivesNoOtherKeysRecord) {
  const TierPlace place = FillSegment(1, 1)[0];
  const auto value = ReadFrom(circle_.get(), place, "kez1");
  EXPECT_EQ(value.status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(TierCircleTest, ARecordIsGoneWhenItsSegmentIsTakenAgain) {
  const TierPlace place = FillSegment(1, 1)[0];
  for (uint64_t i = 1; i < kSomeSegments; ++i) FillSegment(10 * i, 1);
  EXPECT_TRUE(Read(place).ok());
  FillSegment(100, 1);
  EXPECT_EQ(Read(place).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TierCircleTest, IsNotTakenWhileItIsRead) {
  const TierPlace place = FillSegment(1, 1)[0];
  for (uint64_t i = 1; i < kSomeSegments; ++i) FillSegment(10 * i, 1);
  disk_.HoldReads(true);
  std::thread reader([this, &place] { EXPECT_EQ(*Read(place), SomeValue(1)); });
  disk_.AwaitHeld(1);
  EXPECT_FALSE(circle_->TakeOldest().value());
  disk_.HoldReads(false);
  reader.join();
  EXPECT_TRUE(circle_->TakeOldest().value());
  EXPECT_FALSE(circle_->Pin(place));
}

TEST_F(TierCircleTest, ListsWhatIsInTheOldestSegment) {
  const std::vector<TierPlace> places = FillSegment(1, 3);
  ASSERT_TRUE(circle_->Seal().ok());
  for (uint64_t i = 1; i < kSomeSegments; ++i) FillSegment(10 * i, 1);
  const TierCircle::Segment oldest = circle_->ListOldest();
  EXPECT_EQ(oldest.begin, kTierBlockBytes);
  EXPECT_EQ(oldest.end, kTierBlockBytes + kSomeSegmentBytes);
  EXPECT_EQ(oldest.lap, 1u);
  ASSERT_TRUE(oldest.list);
  ASSERT_EQ(oldest.list->size(), 3u);
  EXPECT_EQ((*oldest.list)[2].hash, 3000u);
  EXPECT_EQ((*oldest.list)[2].version, 3u);
  EXPECT_EQ((*oldest.list)[2].position, places[2].position);
}

TEST_F(TierCircleTest, ASegmentOfNobodyHasAnEmptyList) {
  const TierCircle::Segment oldest = circle_->ListOldest();
  EXPECT_EQ(oldest.lap, 0u);
  ASSERT_TRUE(oldest.list);
  EXPECT_TRUE(oldest.list->empty());
}

// Otherwise the list of the lap before would count, and stubs would lead to what is overwritten.
TEST_F(TierCircleTest, ASegmentThatWasNotSealedHasNoListAndNotAFormerOne) {
  FillSegment(1, 1);
  ASSERT_TRUE(circle_->Seal().ok());
  Restart({});
  FillSegment(5, 2);  // the same lap, in another life of the tier
  for (uint64_t i = 1; i < kSomeSegments; ++i) FillSegment(10 * i, 1);
  EXPECT_FALSE(circle_->ListOldest().list);
}

TEST_F(TierCircleTest, AListThatCannotBeReadIsNotKnown) {
  FillSegment(1, 1);
  ASSERT_TRUE(circle_->Seal().ok());
  for (uint64_t i = 1; i < kSomeSegments; ++i) FillSegment(10 * i, 1);
  for (const BadDisk::Read what :
       {BadDisk::Read::kFails, BadDisk::Read::kBits, BadDisk::Read::kShort}) {
    disk_.SetReads(what);
    EXPECT_FALSE(circle_->ListOldest().list);
  }
  disk_.SetReads(BadDisk::Read::kDone);
  EXPECT_TRUE(circle_->ListOldest().list);
}

TEST_F(TierCircleTest, GoesOnBehindTheNewestStub) {
  FillSegment(1, 1);
  const TierPlace kept = FillSegment(2, 1)[0];
  Restart({1, 1, 0, 0});
  EXPECT_FALSE(Add(3));  // no one knows where the former process's segment ends
  EXPECT_TRUE(circle_->Seal().ok());
  const TierPlace next = FillSegment(3, 1)[0];
  EXPECT_EQ(next.position, kTierBlockBytes + 2 * kSomeSegmentBytes);
  EXPECT_EQ(next.lap, 1u);
  EXPECT_EQ(*Read(kept), SomeValue(2));
}

TEST_F(TierCircleTest, GoesOnBehindTheNewestStubOfTheNewestLap) {
  for (uint64_t i = 0; i < kSomeSegments + 1; ++i) FillSegment(10 * (i + 1), 1);
  Restart({2, 1, 1, 1});
  const TierPlace next = FillSegment(3, 1)[0];
  EXPECT_EQ(next.position, kTierBlockBytes + kSomeSegmentBytes);
  EXPECT_EQ(next.lap, 2u);
}

TEST_F(TierCircleTest, AFailedWriteLeavesRoomForOthers) {
  ASSERT_TRUE(circle_->TakeOldest().value());
  const TierPlace lost = *Add(1);
  disk_.SetWrites(BadDisk::Write::kNoSpace);
  EXPECT_TRUE(absl::IsResourceExhausted(circle_->Write()));
  EXPECT_TRUE(circle_->batch_empty());
  disk_.SetWrites(BadDisk::Write::kDone);
  const TierPlace place = *Add(2);
  ASSERT_TRUE(circle_->Write().ok());
  EXPECT_EQ(*Read(place), SomeValue(2));
  EXPECT_EQ(Read(lost).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(TierCircleTest, BelievesNoDiskThatLies) {
  for (const BadDisk::Write what : {BadDisk::Write::kLost, BadDisk::Write::kTorn}) {
    ASSERT_TRUE(circle_->TakeOldest().value());
    disk_.SetWrites(what);
    const TierPlace place = *Add(1);
    ASSERT_TRUE(circle_->Write().ok());
    EXPECT_EQ(Read(place).status().code(), absl::StatusCode::kDataLoss);
    disk_.SetWrites(BadDisk::Write::kDone);
  }
  const TierPlace place = FillSegment(2, 1)[0];
  for (const BadDisk::Read what :
       {BadDisk::Read::kElsewhere, BadDisk::Read::kBits, BadDisk::Read::kShort}) {
    disk_.SetReads(what);
    EXPECT_EQ(Read(place).status().code(), absl::StatusCode::kDataLoss);
  }
  disk_.SetReads(BadDisk::Read::kFails);
  EXPECT_EQ(Read(place).status().code(), absl::StatusCode::kInternal);
  disk_.SetReads(BadDisk::Read::kDone);
  EXPECT_TRUE(Read(place).ok());
}

TEST_F(TierCircleTest, ADiskThatFailsLetsNoSegmentBeTaken) {
  disk_.SetWrites(BadDisk::Write::kFails);
  EXPECT_EQ(circle_->TakeOldest().status().code(), absl::StatusCode::kInternal);
  EXPECT_FALSE(Add(1));
}

TEST_F(TierCircleTest, SmallRecordsShareBlocks) {
  ASSERT_TRUE(circle_->TakeOldest().value());
  const std::string value(kTierValueBytesMin, 'v');
  for (uint64_t version = 1; version <= 10; ++version) {
    ASSERT_TRUE(circle_->Add({.key = "k", .value = value, .version = version}));
  }
  const uint64_t before = disk_.bytes_written();
  ASSERT_TRUE(circle_->Write().ok());
  EXPECT_EQ(disk_.bytes_written() - before, AlignUp(10 * (64 + value.size()), kTierBlockBytes));
}

TEST_F(TierCircleTest, TakesTheLongestRecord) {
  const uint64_t segment_bytes = 2 * kTierReadBytesMax;
  BadDisk disk(kTierBlockBytes + 4 * segment_bytes);
  TierCircle circle({.file = &disk,
                     .tier = kSomeTier,
                     .segment_bytes = segment_bytes,
                     .segments = 4,
                     .laps = {}});
  ASSERT_TRUE(circle.TakeOldest().value());
  const std::string key(kKeyBytesMax, 'k');
  const std::string value(kTierValueBytesMax, 'v');
  const auto place = circle.Add({.key = key, .value = value, .version = 1});
  ASSERT_TRUE(place);
  EXPECT_FALSE(circle.Add({.key = "k", .value = "v", .version = 2}));  // a batch of its own
  ASSERT_TRUE(circle.Write().ok());
  EXPECT_EQ(*ReadFrom(&circle, *place, key), value);
}

}  // namespace
}  // namespace gannet
