#include "server/main/control/worker_pulses.h"

#include <gtest/gtest.h>

#include "tests/common/base/boot_at.h"

namespace gannet {
namespace {

constexpr int64_t kWithinNs = 100;

TEST(WorkerPulsesTest, AWorkerThatHangsIsSeen) {
  WorkerPulses pulses(2);
  pulses.Turn(0, BootAt(1000));
  pulses.Turn(1, BootAt(1050));
  EXPECT_TRUE(pulses.AllBeat(BootAt(1100), kWithinNs));
  EXPECT_FALSE(pulses.AllBeat(BootAt(1101), kWithinNs))
      << "worker 0 had its last turn too long ago";
  pulses.Turn(0, BootAt(1101));
  EXPECT_TRUE(pulses.AllBeat(BootAt(1150), kWithinNs));
}

TEST(WorkerPulsesTest, AWorkerThatSleepsOwesNothing) {
  WorkerPulses pulses(2);
  EXPECT_TRUE(pulses.AllBeat(BootAt(1'000'000), kWithinNs)) << "before the first turn";
  pulses.Turn(0, BootAt(1000));
  pulses.Rest(0);
  EXPECT_TRUE(pulses.AllBeat(BootAt(1'000'000), kWithinNs));
  pulses.Turn(0, BootAt(2'000'000));
  EXPECT_FALSE(pulses.AllBeat(BootAt(2'000'101), kWithinNs)) << "it woke, and then hung";
}

}  // namespace
}  // namespace gannet
