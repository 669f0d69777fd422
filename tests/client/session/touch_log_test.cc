#include "client/session/touch_log.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace gannet {
namespace {

Slot SlotAt(uint64_t i) { return Slot::Of(1, 3, 4096 + 64 * i); }

// Returns how often each offset was told of, and forgets it.
std::map<uint64_t, uint64_t> Told(TouchLog& log) {
  std::map<uint64_t, uint64_t> uses;
  for (const uint64_t word : log.touches()) uses[Touch(word).offset()] += Touch(word).uses();
  log.Clear();
  return uses;
}

TEST(TouchLogTest, NotesNothingUnlessTheServerEvicts) {
  TouchLog log;
  EXPECT_FALSE(log.on());
  log.Restart(TouchLog::Wanted::kNothing);
  EXPECT_FALSE(log.on());
  log.Restart(TouchLog::Wanted::kAll);
  EXPECT_TRUE(log.on());
  EXPECT_TRUE(log.touches().empty());
}

TEST(TouchLogTest, TellsOfAnItemOnceInAnEpochWithAllItsUses) {
  TouchLog log;
  log.Restart(TouchLog::Wanted::kAll);
  for (uint32_t i = 0; i < TouchLog::kGetsPerTouch; ++i) log.Missed();
  log.Used(SlotAt(7));
  EXPECT_EQ(Told(log), (std::map<uint64_t, uint64_t>{{SlotAt(7).offset(), 1}}));
  for (int i = 0; i < 100; ++i) log.Used(SlotAt(7));
  EXPECT_TRUE(log.touches().empty());
  for (uint32_t i = 0; i < TouchLog::kUsesPerEpoch; ++i) log.Used(SlotAt(8));
  Told(log);
  log.Used(SlotAt(7));
  EXPECT_EQ(Told(log), (std::map<uint64_t, uint64_t>{{SlotAt(7).offset(), 101}}));
}

// A near cache tells of many uses of a copy at once.
TEST(TouchLogTest, SomeUsesAtOnceCountAsSoMany) {
  TouchLog log;
  log.Restart(TouchLog::Wanted::kAll);
  constexpr uint32_t kUses = 64;
  log.Used(SlotAt(7), kUses);
  EXPECT_EQ(Told(log), (std::map<uint64_t, uint64_t>{{SlotAt(7).offset(), kUses}}));
  log.Used(SlotAt(7), kUses);
  EXPECT_TRUE(log.touches().empty()) << "it was told of in this epoch";
  for (uint32_t uses = 0; uses < TouchLog::kUsesPerEpoch; uses += kUses) log.Used(SlotAt(8), kUses);
  Told(log);
  log.Used(SlotAt(7));
  EXPECT_EQ(Told(log), (std::map<uint64_t, uint64_t>{{SlotAt(7).offset(), kUses + 1}}));
}

TEST(TouchLogTest, TellsOfAtMostOneItemForSomeGets) {
  TouchLog log;
  log.Restart(TouchLog::Wanted::kAll);
  std::mt19937_64 random(1);
  size_t told = 0;
  constexpr size_t kGets = 100'000;
  for (size_t i = 0; i < kGets; ++i) {
    log.Used(SlotAt(random() % 1'000'000));
    if (log.worth_a_message()) {
      told += log.touches().size();
      log.Clear();
    }
  }
  EXPECT_LE(told, kGets / TouchLog::kGetsPerTouch);
  EXPECT_GT(told, kGets / TouchLog::kGetsPerTouch - 1'000);
}

// Items that are used in turns have their shares all the same.
TEST(TouchLogTest, OfASampleEachUseStandsForThoseBefore) {
  TouchLog log;
  log.Restart(TouchLog::Wanted::kSamples);
  constexpr uint64_t kItems = 8;
  constexpr uint64_t kRounds = 100'000;
  std::map<uint64_t, uint64_t> told;
  for (uint64_t i = 0; i < kItems * kRounds; ++i) {
    log.Used(SlotAt(i % kItems));
    for (const auto& [offset, uses] : Told(log)) told[offset] += uses;
  }
  ASSERT_EQ(told.size(), kItems);
  // Each is told of once in an epoch, with as many uses as a touch has room for.
  constexpr double kEpochs = static_cast<double>(kItems * kRounds) / TouchLog::kUsesPerEpoch;
  for (const auto& [offset, uses] : told) {
    EXPECT_NEAR(static_cast<double>(uses), kEpochs * Touch::kUsesMax, kEpochs * 8) << offset;
  }
}

TEST(TouchLogTest, DropsWhatDoesNotFitAMessage) {
  TouchLog log;
  log.Restart(TouchLog::Wanted::kAll);
  for (uint64_t i = 0; i < 100'000; ++i) log.Used(SlotAt(i));
  EXPECT_EQ(log.touches().size(), kTouchesMax);
}

TEST(TouchLogTest, TellsNothingOfAnotherRunOfTheServer) {
  TouchLog log;
  log.Restart(TouchLog::Wanted::kAll);
  for (uint64_t i = 0; i < 1'000; ++i) log.Used(SlotAt(i));
  EXPECT_FALSE(log.touches().empty());
  log.Restart(TouchLog::Wanted::kAll);
  EXPECT_TRUE(log.touches().empty());
}

TEST(TouchTest, HasTheBytesOfTheDocument) {
  constexpr Touch touch = Touch::Of(0x1000000, 5);
  EXPECT_EQ(touch.word, 0x000000a0'00100000u);
  EXPECT_EQ(touch.offset(), 0x1000000u);
  EXPECT_EQ(touch.uses(), 5u);
}

}  // namespace
}  // namespace gannet
