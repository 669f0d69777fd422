#include "softverbs/nic/application_watch.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <limits>
#include <thread>

#include "softverbs/base/monotonic_clock.h"

namespace softverbs {
namespace {

using Found = Patience::Found;

constexpr uint32_t kManyPolls = std::numeric_limits<uint32_t>::max();

// Some time passes after the mark, whatever the clock's resolution is.
void Mark(ApplicationWatch* application, uint32_t polls) {
  const int64_t marked_ns = application->Mark(polls);
  while (MonotonicNs() == marked_ns) {
  }
}

TEST(ApplicationWatchTest, AWaitSinceTheMarkIsSeenUntilTheNextMark) {
  ApplicationWatch application;
  application.Mark(0);
  EXPECT_FALSE(application.Came());
  application.Polls();
  EXPECT_FALSE(application.Came());
  application.Waits();
  EXPECT_TRUE(application.Came());
  application.Mark(0);
  EXPECT_FALSE(application.Came());
}

TEST(ApplicationWatchTest, OneThatWaitedSinceTheLastBeginIsLookedAtLater) {
  ApplicationWatch application;
  EXPECT_EQ(application.Begin(), Patience::kPollsNs);
  application.Waits();
  EXPECT_EQ(application.Begin(), Patience::kWaitsNs);
  EXPECT_EQ(application.Begin(), Patience::kPollsNs);
}

TEST(ApplicationWatchTest, ManyPollsSinceTheMarkAreSteady) {
  ApplicationWatch application;
  Mark(&application, 7);
  EXPECT_EQ(application.Look(6, /*waits=*/false), Found::kPolls) << "2^32 - 1 polls";
  Mark(&application, kManyPolls);
  EXPECT_EQ(application.Look(kManyPolls, /*waits=*/false), Found::kLeftAlone);
}

TEST(ApplicationWatchTest, PollsDoNotCountForOneThatWaits) {
  ApplicationWatch application;
  Mark(&application, 0);
  EXPECT_EQ(application.Look(kManyPolls, /*waits=*/true), Found::kLeftAlone);
}

// The other thread computes while it is looked at. If it got less than half of a core, it wants
// one. Otherwise, it is busy with something else.
TEST(ApplicationWatchTest, OneThatComputesDoesNotPoll) {
  ApplicationWatch application;
  std::atomic<int> step{0};
  std::thread other([&] {
    application.Polls();
    for (step = 1; step == 1;) {
    }
  });
  while (step == 0) {
  }
  Mark(&application, 0);
  const Found found = application.Look(0, /*waits=*/false);
  EXPECT_TRUE(found == Found::kWantsCore || found == Found::kLeftAlone);
  step = 2;
  other.join();
  Mark(&application, 0);
  EXPECT_EQ(application.Look(0, /*waits=*/false), Found::kLeftAlone) << "it ended";
}

// The other thread gives its core up all the time, as one does that polls another device. On a core
// that both share, it hardly runs, and waits for the core at each look.
TEST(ApplicationWatchTest, OneThatRunsALittleAndNeverPollsIsNotTrustedForLong) {
  constexpr int kLooks = 4;
  constexpr int64_t kComputesNs = 200'000;
  cpu_set_t before_set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before_set), &before_set), 0);
  cpu_set_t one_core;
  CPU_ZERO(&one_core);
  CPU_SET(sched_getcpu(), &one_core);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one_core), &one_core), 0);  // the thread inherits it
  ApplicationWatch application;
  std::atomic<int> turns{0};
  std::atomic<bool> ends{false};
  std::thread other([&] {
    application.Polls();
    while (!ends) {
      ++turns;
      sched_yield();
    }
  });
  while (turns == 0) sched_yield();
  Found found = Found::kWantsCore;
  for (int look = 0; look < kLooks && found == Found::kWantsCore; ++look) {
    Mark(&application, 0);
    const int before = turns;
    while (turns == before) sched_yield();  // it runs
    for (const int64_t begin = MonotonicNs(); MonotonicNs() - begin < kComputesNs;) {
    }
    found = application.Look(0, /*waits=*/false);
  }
  EXPECT_EQ(found, Found::kLeftAlone);
  ends = true;
  other.join();
  sched_setaffinity(0, sizeof(before_set), &before_set);
}

}  // namespace
}  // namespace softverbs
