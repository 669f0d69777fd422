#include "server/main/disk/clock_note.h"

#include <cstddef>

#include "common/base/server_time.h"
#include "gtest/gtest.h"
#include "server/main/disk/data_directory.h"
#include "tests/server/log/journal/simulated_files.h"

namespace gannet {
namespace {

constexpr ServerTime kClock = ServerTime::FromMs(1'700'000'000'000);

class ClockNoteTest : public testing::Test {
 protected:
  ClockNoteTest() : number_(*NumberOfDirectory(&files_, 77)) {}

  // As a process that begins.
  ClockNote Begin() { return ClockNote(&files_, number_, /*syncs=*/true); }

  SimulatedFiles files_{1};
  const uint64_t number_;
};

TEST_F(ClockNoteTest, TheLastTimeIsFoundAgain) {
  EXPECT_EQ(NotedClock(&files_), ServerTime());
  for (uint64_t run = 0; run < 3; ++run) {
    ClockNote note = Begin();
    for (uint64_t i = 0; i < 3; ++i) {
      const ServerTime time = kClock + (10 * run + i);
      note.Write(time);
      EXPECT_EQ(NotedClock(&files_), time);
    }
  }
}

TEST_F(ClockNoteTest, IsWrittenOnceASecond) {
  ClockNote note = Begin();
  note.Poll(kClock, 0);
  note.Poll(kClock + 999, 999 * kNsPerMs);
  EXPECT_EQ(NotedClock(&files_), kClock);
  note.Poll(kClock + 1'000, 1'000 * kNsPerMs);
  EXPECT_EQ(NotedClock(&files_), kClock + 1'000);
}

// Whatever a power cut leaves of a write, the one before it counts.
TEST_F(ClockNoteTest, APowerCutLeavesTheOneBeforeAtLeast) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimulatedFiles files{seed};
    const uint64_t number = *NumberOfDirectory(&files, 77);
    ClockNote note(&files, number, /*syncs=*/true);
    note.Write(kClock);
    note.Write(kClock + 1);
    const uint64_t write = files.operations() + 1;
    files.SetFault(SimulatedFiles::Fault::kPowerCut, write + seed % 2);  // the write, or its sync
    note.Write(kClock + 2);
    files.CutPower();
    EXPECT_GE(NotedClock(&files), kClock + 1) << seed;
  }
}

TEST_F(ClockNoteTest, WhatIsDamagedOrOfAnotherDirectoryDoesNotCount) {
  ClockNote note = Begin();
  note.Write(kClock);
  note.Write(kClock + 1);
  (*files_.BytesOf(kClockFileName))[kClockEntryStride + offsetof(ClockEntry, clock_ms)] ^=
      std::byte{1};
  EXPECT_EQ(NotedClock(&files_), kClock);
  ClockNote other(&files_, number_ + 1, /*syncs=*/true);
  other.Write(kClock + 2);
  other.Write(kClock + 3);
  EXPECT_EQ(NotedClock(&files_), ServerTime());
}

TEST(ClockBeginsAtTest, IsTheMachinesUnlessThatWasSetBack) {
  EXPECT_EQ(ClockBeginsAt(ServerTime(), kClock), ServerTime());
  EXPECT_EQ(ClockBeginsAt(kClock, kClock), ServerTime());
  EXPECT_EQ(ClockBeginsAt(kClock, kClock + 1), ServerTime());
  // What was seen until the next note counts, too.
  EXPECT_EQ(ClockBeginsAt(kClock + 1, kClock), kClock + 1'001);
}

}  // namespace
}  // namespace gannet
