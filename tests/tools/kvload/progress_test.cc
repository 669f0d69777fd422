#include "tools/kvload/progress.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_split.h"

namespace gannet::kvload {
namespace {

void Get(Metrics& metrics, uint64_t ns, uint64_t reads) {
  OpSums& gets = metrics.of(OpKind::kGet);
  gets.latency_ns.Record(ns);
  ++gets.verbs.operations;
  gets.verbs.reads += reads;
}

TEST(ProgressTest, EachLookTellsWhatAllThreadsDidSinceTheLast) {
  Metrics one;
  Metrics two;
  ProgressMeter meter({&one, &two});
  Get(one, 1000, 1);
  Get(two, 3000, 2);
  ++two.of(OpKind::kPut).errors;
  const Interval first = meter.Look(1);
  EXPECT_EQ(first.operations, 2u);
  EXPECT_EQ(first.errors, 1u);
  EXPECT_EQ(first.PerSecond(), 2);
  EXPECT_EQ(first.ReadsPerGet(), 1.5);
  EXPECT_NEAR(static_cast<double>(first.latency_ns.Percentile(1)), 3000, 24);
  Get(one, 500, 1);
  const Interval second = meter.Look(1.5);
  EXPECT_EQ(second.began_s, 1);
  EXPECT_EQ(second.operations, 1u);
  EXPECT_EQ(second.errors, 0u);
  EXPECT_EQ(second.PerSecond(), 2);
  EXPECT_NEAR(static_cast<double>(second.latency_ns.max()), 500, 4);
}

Interval AnInterval() {
  Interval interval{.began_s = 3, .ended_s = 4, .operations = 1000, .gets = 100, .get_reads = 105};
  for (int i = 0; i < 1000; ++i) interval.latency_ns.Record(20'000);
  return interval;
}

TEST(ProgressTest, ALineHasRateLatencyErrorsReadsAndTheTimeLeft) {
  EXPECT_EQ(ProgressLine({.phase = "b", .finished = 4000, .operations = 10'000}, AnInterval()),
            "b: 40 % of 10000, 1000/s, p99 20.0 us, 0 errors, 1.05 READs/GET, ETA 6 s");
  EXPECT_EQ(ProgressLine({.phase = "b", .finished = 4000, .operations = 1 << 30, .seconds = 100},
                         AnInterval()),
            "b: 4 s of 100 s, 1000/s, p99 20.0 us, 0 errors, 1.05 READs/GET, ETA 1 min 36 s");
}

TEST(ProgressTest, ACsvRowHasAFieldForEachColumn) {
  const std::string row = CsvRow("threads=2", "b", AnInterval());
  EXPECT_EQ(row.substr(0, 27), "threads=2,b,4.000,1000,1000");
  const size_t columns = std::vector<std::string>(absl::StrSplit(CsvHeader(), ',')).size();
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(row, ',')).size(), columns);
}

}  // namespace
}  // namespace gannet::kvload
