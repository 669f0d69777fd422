#include "server/main/control/stop_signals.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

using Meaning = StopSignals::Meaning;

TEST(StopSignalsTest, RepeatsAreTheSameRequest) {
  StopSignals signals;
  constexpr int64_t kFirstNs = 5;
  EXPECT_EQ(signals.Judge(kFirstNs), Meaning::kStop);
  EXPECT_EQ(signals.Judge(kFirstNs), Meaning::kRepeat);
  EXPECT_EQ(signals.Judge(kFirstNs + StopSignals::kRepeatNs - 1), Meaning::kRepeat);
}

TEST(StopSignalsTest, ALaterOneEndsAtOnce) {
  StopSignals signals;
  constexpr int64_t kFirstNs = 5;
  EXPECT_EQ(signals.Judge(kFirstNs), Meaning::kStop);
  EXPECT_EQ(signals.Judge(kFirstNs + 1), Meaning::kRepeat);
  EXPECT_EQ(signals.Judge(kFirstNs + StopSignals::kRepeatNs), Meaning::kEndAtOnce);
}

}  // namespace
}  // namespace gannet
