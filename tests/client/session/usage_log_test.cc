#include "client/session/usage_log.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string_view>

namespace gannet {
namespace {

constexpr int64_t kPeriodNs = 500;

class UsageLogTest : public testing::Test {
 protected:
  UsageLogTest() { log_.Restart(true, 0, kPeriodNs); }
  ClientReportView Take(int64_t now_ns) {
    const size_t bytes = log_.Take(now_ns, out_);
    const auto view = ClientReportView::Decode({reinterpret_cast<const char*>(out_.data()), bytes});
    EXPECT_TRUE(view);
    return view.value_or(ClientReportView{});
  }

  UsageLog log_;
  std::array<std::byte, kClientReportBytesMax> out_;
};

TEST_F(UsageLogTest, TellsOnceWhatWasCounted) {
  log_.HitsIn(10 * UsageLog::kBytesOfHit);
  log_.Hit();
  log_.Missed();
  log_.Asked();
  log_.Posted(15);
  log_.PostedOther();
  log_.Took(LatencyKind::kGet, 5000);
  log_.Took(LatencyKind::kGet, 5001);
  const ClientReportView first = Take(kPeriodNs);
  EXPECT_EQ(first.counts.hits, 11u);
  EXPECT_EQ(first.counts.misses, 1u);
  EXPECT_EQ(first.counts.reads, 14u);
  EXPECT_EQ(first.counts.by_rpc, 1u);
  ASSERT_EQ(first.latencies.size(), sizeof(LatencyCount));
  EXPECT_EQ(first.LatencyAt(0).count(), 2u);
  const ClientReportView second = Take(2 * kPeriodNs);
  EXPECT_EQ(second.counts.hits + second.counts.misses + second.counts.reads, 0u);
  EXPECT_TRUE(second.latencies.empty());
}

TEST_F(UsageLogTest, IsDueOnceAPeriodAndOnlyIfThereIsNews) {
  EXPECT_FALSE(log_.Due(kPeriodNs)) << "nothing happened";
  log_.Hit();
  EXPECT_FALSE(log_.Due(kPeriodNs - 1));
  EXPECT_TRUE(log_.Due(kPeriodNs));
  Take(kPeriodNs);
  log_.HitsIn(UsageLog::kBytesOfHit);
  EXPECT_FALSE(log_.Due(2 * kPeriodNs - 1));
  EXPECT_TRUE(log_.Due(2 * kPeriodNs));
}

TEST_F(UsageLogTest, TellsNothingToAServerThatTakesNoReports) {
  log_.Restart(false, 0, kPeriodNs);
  log_.Hit();
  EXPECT_FALSE(log_.Due(kPeriodNs));
}

// A message is counted when it joins a chain, and with the chain when it is posted.
TEST_F(UsageLogTest, AMessageThatIsNotPostedYetIsNoReadLess) {
  log_.PostedOther();
  EXPECT_EQ(Take(kPeriodNs).counts.reads, 0u);
  log_.Posted(3);
  EXPECT_EQ(Take(2 * kPeriodNs).counts.reads, 2u);
}

TEST_F(UsageLogTest, AllBucketsOfAllKindsFit) {
  for (uint64_t ns = 64; ns < uint64_t{1} << 36; ns += ns / 16) {
    for (const LatencyKind kind : {LatencyKind::kGet, LatencyKind::kWrite, LatencyKind::kOther}) {
      log_.Took(kind, static_cast<int64_t>(ns));
    }
  }
  EXPECT_EQ(sizeof(ClientCounts) + Take(kPeriodNs).latencies.size(), kClientReportBytesMax);
}

}  // namespace
}  // namespace gannet
