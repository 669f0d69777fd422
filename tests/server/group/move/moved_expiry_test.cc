// Items that come from a giver whose clock is another one (docs/partitions.md, rule 15).

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/layout/item.h"
#include "server/group/move/clock_difference.h"
#include "tests/server/group/move/receiver_fixture.h"

namespace gannet {
namespace {

constexpr uint64_t kHourMs = 3'600'000;

TEST(ClockDifferenceTest, IsALowerBound) {
  constexpr ClockDifference kNone;
  EXPECT_EQ(kNone.ToOwn(At(5'000)).ms(), 5'000u);
  const ClockDifference ahead(At(kHourMs + 1'000), At(1'000));
  EXPECT_EQ(ahead.ToOwn(At(5'000)).ms(), kHourMs + 4'999) << "both clocks were cut to milliseconds";
  EXPECT_EQ(ahead.ToGivers(At(kHourMs + 4'999)).ms(), 5'000u);
  const ClockDifference behind(At(1'000), At(kHourMs + 1'000));
  EXPECT_EQ(behind.ToOwn(At(kHourMs + 5'000)).ms(), 4'999u);
  EXPECT_EQ(behind.ToGivers(At(4'999)).ms(), kHourMs + 5'000);
}

TEST(ClockDifferenceTest, MakesNoTimeThatIsNone) {
  const ClockDifference behind(At(1'000), At(kHourMs));
  EXPECT_EQ(behind.ToOwn(At(2'000)).ms(), 1u) << "0 is no expiry";
  const ClockDifference ahead(At(kHourMs), At(1'000));
  EXPECT_EQ(ahead.ToOwn(At(kExpiryMsMax)).ms(), kExpiryMsMax);
  for (const ClockDifference& hostile :
       {ClockDifference(At(1'000), At(UINT64_MAX)), ClockDifference(At(UINT64_MAX), At(0))}) {
    for (const uint64_t ms : {uint64_t{0}, uint64_t{1'000}, UINT64_MAX}) {
      EXPECT_GE(hostile.ToOwn(At(ms)).ms(), 1u);
      EXPECT_LE(hostile.ToOwn(At(ms)).ms(), kExpiryMsMax);
      EXPECT_GE(hostile.ToGivers(At(ms)).ms(), 1u);
      EXPECT_LE(hostile.ToGivers(At(ms)).ms(), kExpiryMsMax);
    }
  }
}

class MovedExpiryTest : public PartitionReceiverTest {
 protected:
  void BeginCopy() {
    map_.Wish(kPartition);
    ASSERT_TRUE(Until([&] { return giver_.made == 1; }));
  }
  PartitionIntake& intake() { return *receiver_->intake(); }
  // nullopt: there is no such item at that time of the receiver's clock.
  std::optional<uint64_t> ExpiryAt(uint64_t clock_ms, const std::string& key) {
    const ReadOutcome read = store_->Get(key, {}, At(clock_ms));
    if (read.status == ReplyStatus::kNotFound) return std::nullopt;
    return read.attributes.expiry.ms();
  }
};

TEST_F(MovedExpiryTest, WhatIsTakenExpiresByTheOwnClock) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  intake().UseClock({At(clock_ms_), At(kHourMs + 1'000)});
  const std::string streamed = Key(0);
  const std::string walked = Key(1);
  const std::string stays = Key(2);
  const uint64_t expiry_ms = kHourMs + 6'000;
  EXPECT_EQ(
      intake().Take({.version = 20, .expiry = ExpiresAt(expiry_ms), .key = streamed, .value = "v"}),
      ReplyStatus::kOk);
  EXPECT_EQ(
      intake().Insert({.version = 21, .expiry = ExpiresAt(expiry_ms), .key = walked, .value = "v"},
                      intake().Time()),
      ReplyStatus::kOk);
  EXPECT_EQ(intake().Take({.version = 22, .key = stays, .value = "v"}), ReplyStatus::kOk);
  Publish();
  for (const std::string& key : {streamed, walked}) {
    EXPECT_EQ(ExpiryAt(5'998, key), 5'999u);
    EXPECT_EQ(ExpiryAt(5'999, key), std::nullopt);
  }
  EXPECT_EQ(ExpiryAt(1ull << 40, stays), 0u);
  // It is touched at the giver.
  EXPECT_EQ(
      intake().Take(
          {.version = 23, .expiry = ExpiresAt(expiry_ms + 50), .key = streamed, .value = "v"}),
      ReplyStatus::kOk);
  Publish();
  EXPECT_EQ(ExpiryAt(6'000, streamed), 6'049u);
}

TEST_F(MovedExpiryTest, WhatHasExpiredAtTheGiverIsNotTaken) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  intake().UseClock({At(clock_ms_), At(kHourMs + 1'000)});
  EXPECT_GE(intake().Time(), At(kHourMs + 1'000));
  const std::string key = Key();
  EXPECT_EQ(intake().Take(
                {.version = 20, .expiry = ExpiresAt(kHourMs + 999), .key = key, .value = "value"}),
            ReplyStatus::kNotFound);
  EXPECT_EQ(ExpiryAt(1'000, key), std::nullopt);
}

TEST_F(MovedExpiryTest, TheNextGiverHasAnotherClock) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  intake().UseClock({At(clock_ms_), At(kHourMs)});
  intake().Begin({});
  EXPECT_EQ(intake().Time(), At(clock_ms_));
}

// Somebody may have seen an item expire at the giver until then.
TEST_F(MovedExpiryTest, AsksOnceItsClockHasReachedTheGiversBehindTheEnd) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  intake().UseClock({At(clock_ms_), At(kHourMs + 1'000)});
  CloseAll();
  giver_.clock_behind_end = At(0);
  End();
  EXPECT_FALSE(Until([&] { return Has(); }, 1)) << "the giver has not told its clock yet";
  giver_.clock_behind_end = At(kHourMs + 9'000);
  EXPECT_FALSE(Until([&] { return Has(); }, 1));
  clock_ms_ = 8'998;
  EXPECT_FALSE(Until([&] { return Has(); }, 1));
  clock_ms_ = 8'999;
  EXPECT_TRUE(Until([&] { return Has(); }));
}

TEST_F(MovedExpiryTest, OpensThePartitionAgainIfItsClockDoesNotGetThere) {
  ASSERT_NO_FATAL_FAILURE(BeginCopy());
  CloseAll();
  giver_.clock_behind_end = At(kHourMs);
  End();
  ASSERT_TRUE(Until([&] { return !map_.closed(kPartition); }, 10));
  EXPECT_EQ(map_.owner(kPartition), "g1");
  ASSERT_TRUE(Until([&] { return giver_.made == 2; })) << "it copies again";
}

}  // namespace
}  // namespace gannet
