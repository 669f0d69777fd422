// Partitions move between two groups of whole servers: their items, versions and expiries come
// along while others write, and each ends in one group.

#include "tests/server/group/move/move_servers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "softverbs/tests/support/key_file.h"
#include "softverbs/tests/support/test_seed.h"

namespace gannet {
namespace {

TEST_F(MoveServersTest, PartitionsMoveWhileOthersWrite) {
  std::mt19937_64 random(test_support::TestSeed());
  MakeKeys();
  for (int i = 0; i < 300; ++i) ChangeSomething(random);
  for (const uint16_t partition : kMoves) map_.Wish(partition);
  bool was_closed = false;
  ASSERT_TRUE(StepUntil([&] {
    if (random() % 4 == 0) ChangeSomething(random);
    was_closed = was_closed || map_.closed(kMoves[0]);
    return Moved();
  })) << groups_[1].server->member()->Look().moves->step
      << ": " << groups_[1].server->member()->Look().moves->trouble;
  EXPECT_TRUE(was_closed);
  EXPECT_TRUE(StepUntil([&] { return map_.wishes_.empty(); }));
  ASSERT_TRUE(StepUntil([&] { return Serves(1, keys_[0]) || PartitionOf(keys_[0]) == 7; }));
  for (int i = 0; i < 100; ++i) {
    ChangeSomething(random);
    Step();
  }
  // Each key is where its partition is, and nowhere else once the giver has cleaned up.
  const auto is_clean = [&] {
    for (const std::string& key : keys_) {
      if (!ItemAt(PartitionOf(key) == 7 ? 1 : 0, key).empty()) return false;
    }
    return true;
  };
  EXPECT_TRUE(StepUntil(is_clean));
  for (const std::string& key : keys_) {
    const size_t owner = PartitionOf(key) == 7 ? 0 : 1;
    ASSERT_TRUE(StepUntil([&] { return ItemAt(owner, key) == wanted_[key]; }))
        << key << " is " << ItemAt(owner, key).substr(0, 60) << " instead of "
        << wanted_[key].substr(0, 60);
  }
  EXPECT_EQ(groups_[1].server->member()->Look().moves->moved, std::size(kMoves));
}

TEST_F(MoveServersTest, AMoveThatIsStoppedLeavesEverythingWhereItWas) {
  std::mt19937_64 random(test_support::TestSeed());
  MakeKeys();
  for (int i = 0; i < 300; ++i) ChangeSomething(random);
  for (const uint16_t partition : kMoves) map_.Wish(partition);
  ASSERT_TRUE(StepUntil([&] { return map_.closed(kMoves[0]); }));
  for (const uint16_t partition : kMoves) map_.Wish(partition, "g2", /*stop=*/true);
  ASSERT_TRUE(StepUntil([&] { return map_.wishes_.empty(); }));
  // It may have had all before it saw that.
  const size_t owner = map_.owner(kMoves[0]) == "g1" ? 0 : 1;
  ASSERT_TRUE(StepUntil([&] {
    for (const std::string& key : keys_) {
      if (!Serves(PartitionOf(key) == 7 ? 0 : owner, key)) return false;
    }
    return true;
  }));
  for (int i = 0; i < 100; ++i) {
    ChangeSomething(random);
    Step();
  }
  for (const std::string& key : keys_) {
    const size_t at = PartitionOf(key) == 7 ? 0 : owner;
    ASSERT_TRUE(StepUntil([&] { return ItemAt(at, key) == wanted_[key]; })) << key;
    ASSERT_TRUE(StepUntil([&] { return ItemAt(1 - at, key).empty(); })) << key;
  }
}

// One group's clock is ahead of the other's by an hour.
class MovedClocksTest : public MoveServersTest, public testing::WithParamInterface<size_t> {
 protected:
  void SetUp() override {
    clock_ahead_ms_[GetParam()] = kHourMs;
    StartAll();
    MakeKeys();
    std::erase_if(keys_, [](const std::string& key) { return PartitionOf(key) == 7; });
  }
  void PutAtGiver(const std::string& key, uint64_t expiry_ms) {
    const auto put = groups_[0].server->writes().Put(
        key, "value", {.expiry = Expiry::FromMs(expiry_ms)}, {}, Time(0));
    ASSERT_EQ(put.outcome.status, ReplyStatus::kOk);
  }
};

TEST_P(MovedClocksTest, AnItemExpiresByBothGroupsClocksAtTheSameTime) {
  const uint64_t lives_until_ms = Time(0).ms() + kHourMs / 2;
  const std::string& walked = keys_[0];
  const std::string& streamed = keys_[1];
  const std::string& expired = keys_[2];
  const std::string& stays = keys_[3];
  PutAtGiver(walked, lives_until_ms);
  PutAtGiver(stays, 0);
  PutAtGiver(expired, Time(0).ms() + 1);
  ASSERT_TRUE(StepUntil([&] { return Read(0, expired).status == ReplyStatus::kNotFound; }));
  const uint64_t began_ms = Time(0).ms();
  for (const uint16_t partition : kMoves) map_.Wish(partition);
  ASSERT_TRUE(
      StepUntil([&] { return groups_[1].server->member()->Look().moves->step == "closes"; }));
  PutAtGiver(streamed, lives_until_ms);
  ASSERT_TRUE(StepUntil([&] { return Moved(); }));
  // Both clocks go on while they are read.
  const auto givers_before = static_cast<int64_t>(Time(0).ms());
  const auto own = static_cast<int64_t>(Time(1).ms());
  const auto givers_behind = static_cast<int64_t>(Time(0).ms());
  const auto took_ms = static_cast<int64_t>(Time(0).ms() - began_ms);
  for (const std::string* key : {&walked, &streamed}) {
    const ReadOutcome read = Read(1, *key);
    ASSERT_NE(read.status, ReplyStatus::kNotFound) << *key;
    const auto expiry_ms = static_cast<int64_t>(read.attributes.expiry.ms());
    const int64_t moved_ms = expiry_ms - static_cast<int64_t>(lives_until_ms);
    // Both clocks go on by the same one, and are cut to milliseconds.
    EXPECT_LE(moved_ms, own - givers_before + 1) << *key << " lives longer";
    EXPECT_GE(moved_ms, own - givers_behind - took_ms - 3)
        << *key << " lives shorter than by the copy";
  }
  EXPECT_EQ(Read(1, expired).status, ReplyStatus::kNotFound) << "it was seen to expire";
  EXPECT_EQ(Read(1, stays).attributes.expiry.ms(), 0u);
  EXPECT_NE(Read(1, stays).status, ReplyStatus::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Groups, MovedClocksTest, testing::Values(0, 1),
                         [](const auto& param_info) {
                           return param_info.param == 0 ? "TheGiversIsAhead"
                                                        : "TheReceiversIsAhead";
                         });

class MoveKeysTest : public MoveServersTest {
 protected:
  static constexpr char kClients[] = "1 000102030405060708090a0b0c0d0e0f\n";
  static constexpr char kMembers[] = "2 101112131415161718191a1b1c1d1e1f";
  static constexpr char kRight[] = " replica\n";
  static constexpr char kOther[] = "3 202122232425262728292a2b2c2d2e2f replica\n";
  static std::string Good() { return absl::StrCat(kClients, kMembers, kRight); }

  void SetUp() override {}  // each test has other keys
  void StartWith(const std::string& giver, const std::string& receiver) {
    giver_.Write(giver);
    receiver_.Write(receiver);
    auth_files_ = {giver_.path(), receiver_.path()};
    StartAll();
    for (const uint16_t partition : kMoves) map_.Wish(partition);
  }
  std::string Trouble() { return groups_[1].server->member()->Look().moves->trouble; }

  test_support::KeyFile giver_{""};
  test_support::KeyFile receiver_{""};
};

TEST_F(MoveKeysTest, AReceiverNeedsAKeyWithTheRightReplicaAtTheGiver) {
  ASSERT_NO_FATAL_FAILURE(StartWith(absl::StrCat(kClients, kMembers, "\n", kOther), Good()));
  ASSERT_TRUE(StepUntil([this] { return !Trouble().empty(); }));
  EXPECT_NE(Trouble().find("lacks the right \"replica\""), std::string::npos) << Trouble();
  EXPECT_FALSE(map_.closed(kMoves[0]));
  giver_.Write(Good());
  EXPECT_TRUE(StepUntil([this] { return Moved(); })) << Trouble();
}

TEST_F(MoveKeysTest, AReceiverFollowsItsKeyFile) {
  ASSERT_NO_FATAL_FAILURE(StartWith(Good(), absl::StrCat(kClients, kOther)));
  ASSERT_TRUE(StepUntil([this] { return !Trouble().empty(); }));
  EXPECT_FALSE(map_.closed(kMoves[0]));
  receiver_.Write(Good());
  EXPECT_TRUE(StepUntil([this] { return Moved(); })) << Trouble();
}

}  // namespace
}  // namespace gannet
