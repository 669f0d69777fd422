#include "common/protocol/client_report.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "common/protocol/message.h"
#include "tests/common/protocol/golden_bytes.h"

namespace gannet {
namespace {

std::string ReportOf(const ClientCounts& counts, const std::vector<LatencyCount>& latencies) {
  std::string bytes(reinterpret_cast<const char*>(&counts), sizeof(counts));
  for (const LatencyCount& it : latencies) {
    bytes.append(reinterpret_cast<const char*>(&it.word), sizeof(it.word));
  }
  return bytes;
}

TEST(ClientReportTest, GoldenBytes) {
  const std::string report =
      ReportOf({.hits = 1000, .misses = 2, .reads = 1003, .by_rpc = 1},
               {LatencyCount::Of(LatencyKind::kWrite, LatencyBucket::Of(20'000), 7)});
  EXPECT_EQ(Hex(std::as_bytes(std::span(report))),
            "e8 03 00 00 00 00 00 00 02 00 00 00 00 00 00 00\n"
            "eb 03 00 00 00 00 00 00 01 00 00 00 00 00 00 00\n"
            "07 00 00 00 1d 01 00 00");
  const auto view = ClientReportView::Decode(report);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->counts.reads, 1003u);
  int seen = 0;
  view->ForEachLatency([&seen](LatencyCount it) {
    ++seen;
    EXPECT_EQ(it.count(), 7u);
    EXPECT_EQ(it.kind(), static_cast<size_t>(LatencyKind::kWrite));
    EXPECT_EQ(it.bucket(), LatencyBucket::Of(20'000));
  });
  EXPECT_EQ(seen, 1);
}

TEST(ClientReportTest, BucketsHoldWhatTheySay) {
  for (uint64_t ns = 1; ns < uint64_t{1} << 33; ns += 1 + ns / 100) {
    const size_t bucket = LatencyBucket::Of(ns);
    ASSERT_LT(ns, LatencyBucket::EndNs(bucket)) << ns;
    const uint64_t least = bucket == 0 ? 0 : LatencyBucket::EndNs(bucket - 1);
    ASSERT_GE(ns, least);
  }
  EXPECT_EQ(LatencyBucket::Of(UINT64_MAX), LatencyBucket::kCount - 1);
}

TEST(ClientReportTest, RefusesWhatNoClientSends) {
  const LatencyCount good = LatencyCount::Of(LatencyKind::kGet, 1, 1);
  EXPECT_TRUE(ClientReportView::Decode(ReportOf({}, {good})));
  EXPECT_FALSE(ClientReportView::Decode(""));
  EXPECT_FALSE(ClientReportView::Decode(std::string(24, '\0')));
  EXPECT_FALSE(ClientReportView::Decode(ReportOf({}, {good}).substr(0, 36)));
  EXPECT_FALSE(ClientReportView::Decode(ReportOf({.hits = kClientCountMax + 1}, {})));
  EXPECT_FALSE(ClientReportView::Decode(ReportOf({.by_rpc = UINT64_MAX}, {})));
  const uint64_t one = 1;
  EXPECT_FALSE(ClientReportView::Decode(ReportOf({}, {LatencyCount(0)}))) << "a count of zero";
  EXPECT_FALSE(ClientReportView::Decode(ReportOf({}, {LatencyCount(one | uint64_t{109} << 32)})));
  EXPECT_FALSE(ClientReportView::Decode(ReportOf({}, {LatencyCount(one | uint64_t{3} << 40)})));
  EXPECT_FALSE(ClientReportView::Decode(ReportOf({}, {LatencyCount(one | uint64_t{1} << 63)})));
  const std::vector<LatencyCount> many(kLatencyKinds * LatencyBucket::kCount + 1, good);
  EXPECT_FALSE(ClientReportView::Decode(ReportOf({}, many)));
}

// A heartbeat says how much of its payload is a report. The rest are touches.
TEST(ClientReportTest, AHeartbeatSaysHowLongItsReportIs) {
  RequestHeader heartbeat{};
  heartbeat.value_bytes = 48;
  const auto decodes = [&heartbeat](uint32_t report_bytes) {
    heartbeat.heartbeat.report_bytes = report_bytes;
    std::array<std::byte, kMessageBytesMax> message;
    const size_t bytes = EncodeRequest(heartbeat, "", std::string(48, '\0'), message);
    RequestView view;
    return !DecodeRequest(std::span(message).first(bytes), &view);
  };
  for (const uint32_t good : {0u, 32u, 40u, 48u}) EXPECT_TRUE(decodes(good)) << good;
  for (const uint32_t bad : {1u, 8u, 36u, 56u, 1u << 31}) EXPECT_FALSE(decodes(bad)) << bad;
}

TEST(ClientReportTest, QuantilesAreEndsOfBuckets) {
  std::array<uint64_t, LatencyBucket::kCount> counts{};
  const auto count = [&counts](size_t bucket) { return counts[bucket]; };
  EXPECT_EQ(LatencyQuantileNs(0.5, count), 0u);
  counts[LatencyBucket::Of(1000)] = 98;
  counts[LatencyBucket::Of(1'000'000)] = 2;
  EXPECT_EQ(LatencyQuantileNs(0.5, count), LatencyBucket::EndNs(LatencyBucket::Of(1000)));
  EXPECT_EQ(LatencyQuantileNs(0.99, count), LatencyBucket::EndNs(LatencyBucket::Of(1'000'000)));
}

}  // namespace
}  // namespace gannet
