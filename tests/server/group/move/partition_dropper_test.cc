#include "server/group/move/partition_dropper.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/server/group/move/many_keys.h"
#include "tests/server/memory/store/at.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/writes/recorded_changes.h"

namespace gannet {
namespace {

class PartitionDropperTest : public testing::Test {
 protected:
  PartitionDropperTest() : store_(64 << 20, 4 * kItems) {
    // Every third partition.
    for (uint32_t i = 0; i < kPartitions; i += 3) partitions_.set(i);
  }
  void Fill() {
    for (int i = 0; i < kItems; ++i) {
      ASSERT_EQ(store_.GeneralPut(KeyOf(i), "v", {}, {}, At(kNowMs)).status, ReplyStatus::kOk);
    }
  }
  bool IsDropped(int i) const { return partitions_[PartitionOf(KeyOf(i))]; }
  bool Step() {
    store_.writes().Publish(safe_);
    return dropper_.Step(At(kNowMs));
  }
  void ExpectOnlyTheOthers() {
    uint64_t dropped = 0;
    for (int i = 0; i < kItems; ++i) {
      ASSERT_EQ(store_.Get(KeyOf(i), kNowMs).has_value(), !IsDropped(i)) << KeyOf(i);
      dropped += IsDropped(i);
    }
    EXPECT_GT(dropped, 0u);
    EXPECT_EQ(dropper_.removed(), dropped);
  }

  TestStore store_;
  PartitionDropper::Partitions partitions_;
  uint64_t safe_ = 0;  // up to where the store may have what is recorded
  PartitionDropper dropper_{&store_.writes()};
};

TEST_F(PartitionDropperTest, DeletesTheItemsOfItsPartitionsAndNoOthersInBoundedSteps) {
  Fill();
  EXPECT_TRUE(dropper_.done()) << "nothing was asked for";
  dropper_.Begin(partitions_);
  EXPECT_FALSE(dropper_.done());
  uint64_t before = 0;
  uint64_t steps = 0;
  for (bool done = false; !done; ++steps) {
    done = Step();
    ASSERT_LE(dropper_.removed() - before, 256u + 3 * kSlotsPerBucket);
    before = dropper_.removed();
  }
  EXPECT_GT(steps, 20u);
  EXPECT_TRUE(dropper_.done());
  ExpectOnlyTheOthers();
}

TEST_F(PartitionDropperTest, LooksAtNoHomeIfThereAreNoPartitions) {
  Fill();
  dropper_.Begin({});
  EXPECT_TRUE(Step());
  EXPECT_EQ(dropper_.removed(), 0u);
}

// So that the backups follow. It is done once they have.
TEST_F(PartitionDropperTest, ItsDeletionsAreRecordedAndWait) {
  RecordedChanges sink;
  store_->UseSink(&sink);
  store_.writes().WaitFor(&sink);
  Fill();
  store_.writes().Publish(sink.end);
  const uint64_t puts = sink.changes.size();
  dropper_.Begin(partitions_);
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(Step());
  EXPECT_EQ(sink.changes.size() - puts, dropper_.removed());
  EXPECT_TRUE(sink.changes.back().starts_with("delete "));
  safe_ = sink.end - 1;
  EXPECT_FALSE(Step());
  safe_ = sink.end;
  EXPECT_TRUE(Step());
  ExpectOnlyTheOthers();
}

// What is decided is not in the index before it is published.
TEST_F(PartitionDropperTest, FindsWhatWasDecidedBeforeAndIsPublishedLate) {
  RecordedChanges sink;
  store_->UseSink(&sink);
  store_.writes().WaitFor(&sink);
  Fill();
  dropper_.Begin(partitions_);
  for (int i = 0; i < 10'000; ++i) ASSERT_FALSE(Step());
  for (int i = 0; i < 10'000 && !dropper_.done(); ++i) {
    safe_ = sink.end;
    Step();
  }
  EXPECT_TRUE(dropper_.done());
  ExpectOnlyTheOthers();
}

TEST_F(PartitionDropperTest, AStepWhoseDeletionsAreRefusedIsDoneAgain) {
  RecordedChanges sink;
  store_->UseSink(&sink);
  store_.writes().WaitFor(&sink);
  Fill();
  store_.writes().Publish(sink.end);
  dropper_.Begin(partitions_);
  Step();
  const uint64_t removed = dropper_.removed();
  sink.refuses = true;
  for (int i = 0; i < 1'000; ++i) ASSERT_FALSE(Step());
  EXPECT_EQ(dropper_.removed(), removed);
  sink.refuses = false;
  for (int i = 0; i < 10'000 && !dropper_.done(); ++i) {
    Step();
    safe_ = sink.end;
  }
  EXPECT_TRUE(dropper_.done());
  ExpectOnlyTheOthers();
}

TEST_F(PartitionDropperTest, BeginsAnewWithOtherPartitions) {
  Fill();
  dropper_.Begin(partitions_);
  Step();
  dropper_.Begin(~partitions_);
  while (!Step()) {
  }
  for (int i = 0; i < kItems; ++i) {
    if (!IsDropped(i)) {
      ASSERT_EQ(store_.Get(KeyOf(i), kNowMs), std::nullopt) << KeyOf(i);
    }
  }
}

}  // namespace
}  // namespace gannet
