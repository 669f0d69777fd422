// Which partitions a receiver takes together.

#include "server/move/move_batch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/cluster/map_changes.h"

namespace gannet {
namespace {

using Partitions = std::vector<uint16_t>;

class MoveBatchTest : public testing::Test {
 protected:
  MoveBatchTest() {
    map_.mod_revision = 1;
    map_.config.groups = {"g1", "g2", "g3"};
    map_.config.partitions.assign(kPartitions, 0);
    for (uint16_t i = 500; i < kPartitions; ++i) map_.config.partitions[i] = 2;
  }
  MovesSeen seen() const { return {.map = map_, .wishes = wishes_, .group = "g2"}; }
  void Wish(uint16_t partition, std::string to = "g2") {
    wishes_[partition] = {.to = std::move(to), .mod_revision = partition};
  }
  void Close(std::string_view giver, const Partitions& partitions) {
    map_.config = *ClosePartitions(map_.config, giver, partitions);
    ++map_.mod_revision;
  }

  SeenMap map_;
  PartitionMoveWishes wishes_;
};

TEST_F(MoveBatchTest, IsOfOneGiver) {
  EXPECT_FALSE(NextBatch(seen()));
  Wish(1);
  Wish(2, "g3");
  Wish(3);
  Wish(600);
  const auto batch = NextBatch(seen());
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->giver, "g1");
  EXPECT_EQ(batch->partitions, (Partitions{1, 3}));
  EXPECT_EQ(CountWanted(seen()), 3u);
}

TEST_F(MoveBatchTest, HasAllThatComesFromItsGiver) {
  for (uint16_t i = 0; i < 300; ++i) Wish(i);
  EXPECT_EQ(NextBatch(seen())->partitions.size(), 300u);
}

TEST_F(MoveBatchTest, WhatIsClosedIsOpenedAgainFirst) {
  for (const uint16_t i : {1, 2, 3, 600}) Wish(i);
  Wish(4, "g3");
  Close("g1", {3, 4});
  EXPECT_EQ(NextBatch(seen())->partitions, (Partitions{1, 2}));
  EXPECT_EQ(LeftClosed(seen(), nullptr), Partitions{3}) << "4 is the other receiver's";
  const auto reopen = ReopenTxn(seen(), {3});
  ASSERT_TRUE(reopen.ok());
  EXPECT_FALSE(IsClosed(reopen->wanted, 3));
  EXPECT_FALSE(reopen->end_moves);
  map_.config = reopen->wanted;
  EXPECT_EQ(NextBatch(seen())->partitions, (Partitions{1, 2, 3}));
}

TEST_F(MoveBatchTest, AnOpenOneThatNobodyWantsGoes) {
  Wish(1);
  Wish(2);
  MoveBatch batch = *NextBatch(seen());
  EXPECT_TRUE(Follow(seen(), &batch));
  wishes_.erase(1);
  EXPECT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(batch.partitions, Partitions{2});
  wishes_.erase(2);
  EXPECT_FALSE(Follow(seen(), &batch));
  EXPECT_EQ(batch.moved, 0u);
}

TEST_F(MoveBatchTest, FollowsTheSliceThatItCloses) {
  for (const uint16_t i : {1, 2, 3, 4}) Wish(i);
  MoveBatch batch = *NextBatch(seen());
  batch.slices = {{.partitions = {1, 2}}};
  const auto close = CloseTxn(seen(), batch, 9);
  ASSERT_TRUE(close.ok());
  EXPECT_EQ(close->moves, (std::vector<std::pair<uint16_t, int64_t>>{{1, 1}, {2, 2}}));
  EXPECT_EQ(close->group, 9u);
  EXPECT_FALSE(close->end_moves);
  EXPECT_TRUE(Follow(seen(), &batch));
  EXPECT_FALSE(batch.closed()) << "the transaction was not executed";
  map_.config = close->wanted;
  EXPECT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(batch.closed_at(), 1u);
  EXPECT_EQ(batch.slices.front().partitions, (Partitions{1, 2}));
  EXPECT_EQ(batch.partitions, (Partitions{1, 2, 3, 4}));
  EXPECT_TRUE(LeftClosed(seen(), &batch).empty());
  map_.config = *ReopenPartitions(map_.config, Partitions{1});
  EXPECT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(batch.slices.front().partitions, Partitions{2});
  EXPECT_EQ(batch.partitions, (Partitions{2, 3, 4})) << "1 is written again";
}

TEST_F(MoveBatchTest, ClosesSlicesOneAfterTheOther) {
  for (uint16_t i = 0; i < kMovesOfTxnMax + 20; ++i) Wish(i);
  MoveBatch batch = *NextBatch(seen());
  ASSERT_TRUE(NextSlice(&batch));
  EXPECT_EQ(batch.slices.back().partitions.size(), kMovesOfTxnMax);
  ASSERT_TRUE(NextSlice(&batch));
  EXPECT_EQ(batch.slices.size(), 1u) << "the first is not closed yet";
  map_.config = CloseTxn(seen(), batch, 9)->wanted;
  ASSERT_TRUE(Follow(seen(), &batch));
  ASSERT_TRUE(NextSlice(&batch));
  EXPECT_EQ(batch.slices.back().partitions.size(), 20u);
  EXPECT_FALSE(batch.IsClosed(kMovesOfTxnMax));
  map_.config = CloseTxn(seen(), batch, 9)->wanted;
  ASSERT_TRUE(Follow(seen(), &batch));
  EXPECT_FALSE(NextSlice(&batch));
  EXPECT_TRUE(batch.IsClosed(kMovesOfTxnMax));
  EXPECT_EQ(batch.closed_at(), map_.config.revision);
  EXPECT_TRUE(LeftClosed(seen(), &batch).empty());
  // They are given one after the other, too, each by the close that it had.
  map_.config = GiveTxn(seen(), batch, 9)->wanted;
  ASSERT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(batch.moved, kMovesOfTxnMax);
  ASSERT_EQ(batch.slices.size(), 1u);
  map_.config = GiveTxn(seen(), batch, 9)->wanted;
  EXPECT_FALSE(Follow(seen(), &batch));
  EXPECT_EQ(batch.moved, kMovesOfTxnMax + 20);
}

// Only a part of what it wanted to close is closed. So that was somebody else.
TEST_F(MoveBatchTest, WhatIsNotClosedTogetherGoes) {
  for (const uint16_t i : {1, 2, 3, 4}) Wish(i);
  MoveBatch batch = *NextBatch(seen());
  batch.slices = {{.partitions = {1, 2}}};
  Close("g1", {2, 3});
  EXPECT_TRUE(Follow(seen(), &batch));
  EXPECT_FALSE(batch.closed());
  EXPECT_EQ(batch.slices.front().partitions, Partitions{1});
  EXPECT_EQ(batch.partitions, (Partitions{1, 4}));
  EXPECT_EQ(LeftClosed(seen(), &batch), (Partitions{2, 3}));
}

// It was opened, and closed once more: then what was taken says nothing.
TEST_F(MoveBatchTest, WhatWasClosedAgainIsAnotherClose) {
  Wish(1);
  MoveBatch batch = *NextBatch(seen());
  batch.slices = {{.partitions = {1}}};
  Close("g1", {1});
  EXPECT_TRUE(Follow(seen(), &batch));
  map_.config = *ReopenPartitions(map_.config, Partitions{1});
  Close("g1", {1});
  EXPECT_FALSE(Follow(seen(), &batch));
  EXPECT_EQ(batch.moved, 0u);
}

TEST_F(MoveBatchTest, CountsWhatHasCome) {
  for (const uint16_t i : {1, 2, 3}) Wish(i);
  MoveBatch batch = *NextBatch(seen());
  batch.slices = {{.partitions = {1, 2}}};
  Close("g1", {1, 2});
  ASSERT_TRUE(Follow(seen(), &batch));
  const auto give = GiveTxn(seen(), batch, 9);
  ASSERT_TRUE(give.ok());
  EXPECT_EQ(give->moves, (std::vector<std::pair<uint16_t, int64_t>>{{1, 1}, {2, 2}}));
  EXPECT_EQ(give->group, 9u);
  EXPECT_TRUE(give->end_moves);
  map_.config = give->wanted;
  EXPECT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(batch.moved, 2u);
  EXPECT_FALSE(batch.closed());
  EXPECT_TRUE(batch.slices.empty());
  EXPECT_EQ(batch.partitions, Partitions{3});
}

TEST_F(MoveBatchTest, AClosedOneThatNobodyWantsIsOpenedAgain) {
  Wish(1);
  Wish(2);
  MoveBatch batch = *NextBatch(seen());
  batch.slices = {{.partitions = {1, 2}}};
  Close("g1", {1, 2});
  ASSERT_TRUE(Follow(seen(), &batch));
  EXPECT_TRUE(LeftClosed(seen(), &batch).empty());
  wishes_.erase(1);
  ASSERT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(LeftClosed(seen(), &batch), Partitions{1});
}

TEST_F(MoveBatchTest, EndsOnlyWishesThatAreOver) {
  Wish(1);
  EXPECT_FALSE(EndTxn(seen()));
  Wish(2);
  Wish(3);
  wishes_[2].stop = wishes_[3].stop = true;
  Close("g1", {3});
  const auto end = EndTxn(seen());
  ASSERT_TRUE(end);
  EXPECT_EQ(end->moves, (std::vector<std::pair<uint16_t, int64_t>>{{2, 2}, {3, 3}}));
  EXPECT_TRUE(end->end_moves);
  EXPECT_TRUE(end->wanted.closed.empty());
  EXPECT_EQ(end->wanted.revision, map_.config.revision + 1);
}

}  // namespace
}  // namespace gannet
