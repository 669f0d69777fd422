#include "server/sessions/locks/lock_rail_life.h"

#include "common/base/boot_time.h"
#include "gtest/gtest.h"
#include "tests/common/base/boot_at.h"

namespace gannet {
namespace {

constexpr int64_t kSilenceNs = 800;
constexpr int64_t kDownNs = LockRailLife::kDownNsMax;
constexpr LockRailLife::Seen kUp{};
constexpr LockRailLife::Seen kDown{.port_up = false};
constexpr LockRailLife::Seen kSwapsFail{.swaps = false};

TEST(LockRailLifeTest, IsDeadWhenItsPortWasDownForTooLong) {
  LockRailLife life(kDownNs);
  EXPECT_FALSE(life.LookDead(kDown, BootAt(1000)));
  EXPECT_FALSE(life.LookDead(kDown, BootAt(1000 + kDownNs - 1)));
  EXPECT_TRUE(life.LookDead(kDown, BootAt(1000 + kDownNs)));
}

TEST(LockRailLifeTest, LivesIfItsPortComesBackInTime) {
  LockRailLife life(kDownNs);
  EXPECT_FALSE(life.LookDead(kDown, BootAt(1000)));
  EXPECT_FALSE(life.LookDead(kUp, BootAt(1500)));
  EXPECT_FALSE(life.LookDead(kDown, BootAt(1700)));
  EXPECT_FALSE(life.LookDead(kDown, BootAt(1700 + kDownNs - 1)));
  EXPECT_TRUE(life.LookDead(kDown, BootAt(1700 + kDownNs)));
}

TEST(LockRailLifeTest, IsDeadAtOnceIfItsSwapsFail) {
  LockRailLife life(kSilenceNs);
  EXPECT_TRUE(life.LookDead(kSwapsFail, BootAt(1000)));
}

TEST(LockRailLifeTest, ItsStatesFollowEachOtherInACircle) {
  using enum LockRailState;
  for (const LockRailState from : {kServes, kEnds, kWaits}) {
    for (const LockRailState to : {kServes, kEnds, kWaits}) {
      const bool next = (from == kServes && to == kEnds) || (from == kEnds && to == kWaits) ||
                        (from == kWaits && to == kServes);
      EXPECT_EQ(MayFollow(from, to), next);
    }
  }
}

class DeadLockRailTest : public testing::Test {
 protected:
  DeadLockRailTest() { life_.End(); }
  LockRailLife life_{kSilenceNs};
};

TEST_F(DeadLockRailTest, AnotherServesWhenTheLastLeaseIsOver) {
  life_.OnAllKnow(BootAt(5000), BootAt(1000));
  EXPECT_FALSE(life_.MayServe(/*gone=*/true, BootAt(4999)));
  EXPECT_TRUE(life_.MayServe(/*gone=*/true, BootAt(5000)));
}

TEST_F(DeadLockRailTest, AnotherServesASilenceAfterAllKnowIfThereIsNoLease) {
  life_.OnAllKnow(BootTime(), BootAt(1000));
  EXPECT_FALSE(life_.MayServe(/*gone=*/true, BootAt(1000 + kSilenceNs - 1)));
  EXPECT_TRUE(life_.MayServe(/*gone=*/true, BootAt(1000 + kSilenceNs)));
}

TEST_F(DeadLockRailTest, NoneServesWhileConnectionsOfHoldersAreThere) {
  life_.OnAllKnow(BootTime(), BootAt(1000));
  EXPECT_FALSE(life_.MayServe(/*gone=*/false, BootAt(1'000'000)));
}

TEST_F(DeadLockRailTest, TheNextOneDiesByItsOwnPort) {
  life_.OnAllKnow(BootTime(), BootAt(1000));
  life_.Serve();
  EXPECT_EQ(life_.state(), LockRailState::kServes);
  EXPECT_FALSE(life_.LookDead(kDown, BootAt(10'000)));
  EXPECT_TRUE(life_.LookDead(kDown, BootAt(10'000 + kDownNs)));
}

}  // namespace
}  // namespace gannet
