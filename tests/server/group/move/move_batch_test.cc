// Which partitions a receiver takes together.

#include "server/group/move/move_batch.h"

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
  EXPECT_TRUE(reopen->ended.empty());
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

TEST_F(MoveBatchTest, FollowsItsClose) {
  for (const uint16_t i : {1, 2, 3}) Wish(i);
  MoveBatch batch = *NextBatch(seen());
  batch.closing = true;
  const auto close = CloseTxn(seen(), batch, 9);
  ASSERT_TRUE(close.ok());
  EXPECT_EQ(close->group, 9u);
  EXPECT_TRUE(close->ended.empty());
  EXPECT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(batch.closed_at, 0u) << "the transaction was not executed";
  map_.config = close->wanted;
  EXPECT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(batch.closed_at, 1u);
  EXPECT_EQ(batch.partitions, (Partitions{1, 2, 3}));
  EXPECT_TRUE(LeftClosed(seen(), &batch).empty());
  map_.config = *ReopenPartitions(map_.config, Partitions{1});
  EXPECT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(batch.partitions, (Partitions{2, 3})) << "1 is written again";
}

// An earlier primary of the group had sent the same, and that is executed while this one copies.
TEST_F(MoveBatchTest, AnothersCloseIsNotItsOwn) {
  Wish(1);
  MoveBatch batch = *NextBatch(seen());
  Close("g1", {1});
  EXPECT_FALSE(Follow(seen(), &batch));
  EXPECT_EQ(LeftClosed(seen(), &batch), Partitions{1});
}

TEST_F(MoveBatchTest, AnyNumberIsClosedAndGivenTogether) {
  for (uint16_t i = 0; i < 500; ++i) Wish(i);
  MoveBatch batch = *NextBatch(seen());
  batch.closing = true;
  map_.config = CloseTxn(seen(), batch, 9)->wanted;
  ASSERT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(batch.closed_at, map_.config.revision);
  const auto give = GiveTxn(seen(), batch, 9);
  ASSERT_TRUE(give.ok());
  EXPECT_EQ(give->group, 9u);
  EXPECT_TRUE(give->ended.empty());
  map_.config = give->wanted;
  EXPECT_FALSE(Follow(seen(), &batch));
  EXPECT_EQ(batch.moved, 500u);
  // The wishes are ended in parts.
  size_t ended = 0;
  while (const auto end = EndTxn(seen())) {
    ASSERT_LE(end->ended.size(), kMovesOfTxnMax);
    EXPECT_EQ(end->wanted, map_.config);
    ended += end->ended.size();
    for (const auto& [partition, revision] : end->ended) wishes_.erase(partition);
  }
  EXPECT_EQ(ended, 500u);
}

// Only a part of what it wanted to close is closed. So that was somebody else.
TEST_F(MoveBatchTest, WhatIsNotClosedTogetherGoes) {
  for (const uint16_t i : {1, 2, 3, 4}) Wish(i);
  MoveBatch batch = *NextBatch(seen());
  batch.closing = true;
  Close("g1", {2, 3});
  EXPECT_TRUE(Follow(seen(), &batch));
  EXPECT_EQ(batch.closed_at, 0u);
  EXPECT_EQ(batch.partitions, (Partitions{1, 4}));
  EXPECT_EQ(LeftClosed(seen(), &batch), (Partitions{2, 3}));
}

// It was opened, and closed once more: then what was taken says nothing.
TEST_F(MoveBatchTest, WhatWasClosedAgainIsAnotherClose) {
  Wish(1);
  MoveBatch batch = *NextBatch(seen());
  batch.closing = true;
  Close("g1", {1});
  EXPECT_TRUE(Follow(seen(), &batch));
  map_.config = *ReopenPartitions(map_.config, Partitions{1});
  Close("g1", {1});
  EXPECT_FALSE(Follow(seen(), &batch));
  EXPECT_EQ(batch.moved, 0u);
}

TEST_F(MoveBatchTest, AClosedOneThatNobodyWantsIsOpenedAgain) {
  Wish(1);
  Wish(2);
  MoveBatch batch = *NextBatch(seen());
  batch.closing = true;
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
  EXPECT_EQ(end->ended, (std::vector<std::pair<uint16_t, int64_t>>{{2, 2}, {3, 3}}));
  EXPECT_TRUE(end->wanted.closed.empty());
  EXPECT_EQ(end->wanted.revision, map_.config.revision + 1);
}

}  // namespace
}  // namespace gannet
