#include "tools/kvload/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gannet::kvload {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

TEST(SweepTest, NamesAFlagAndItsValues) {
  const auto sweep = ParseSweep("threads:1,2,8");
  ASSERT_TRUE(sweep.ok()) << sweep.status();
  EXPECT_EQ(sweep->flag, "threads");
  EXPECT_EQ(sweep->values, (std::vector<uint64_t>{1, 2, 8}));
  EXPECT_EQ(sweep->NameOf(2), "threads=8");
  for (const char* text : {"", "threads", "threads:", "records:1", "threads:1,", "threads:two",
                           "threads:-1", "depth:5000000000"}) {
    EXPECT_FALSE(ParseSweep(text).ok()) << text;
  }
}

TEST(SweepTest, LoadsOnceUnlessTheRecordsChange) {
  const LoadOptions options;
  const Sweep threads = *ParseSweep("threads:1,2");
  EXPECT_EQ(OptionsOfRun(options, threads, 0).phase, Phase::kBoth);
  EXPECT_EQ(OptionsOfRun(options, threads, 1).phase, Phase::kRun);
  EXPECT_EQ(OptionsOfRun(options, threads, 1).threads, 2u);
  const Sweep sizes = *ParseSweep("value_size:100,1000");
  EXPECT_EQ(OptionsOfRun(options, sizes, 1).phase, Phase::kBoth);
  EXPECT_EQ(OptionsOfRun(options, sizes, 1).sizes.value_bytes, 1000u);
}

TEST(SweepTest, RefusesAValueThatIsOutOfRange) {
  EXPECT_TRUE(Validate(LoadOptions(), *ParseSweep("depth:1,64")).ok());
  EXPECT_FALSE(Validate(LoadOptions(), *ParseSweep("depth:1,100000")).ok());
}

std::vector<Report> Reports(const Sweep& sweep) {
  std::vector<Report> reports;
  for (size_t i = 0; i < sweep.values.size(); ++i) {
    Report report{.options = OptionsOfRun(LoadOptions(), sweep, i), .workload = "c"};
    report.measured.seconds = 1;
    for (uint64_t n = 0; n < 1000 * (i + 1); ++n) {
      report.measured.metrics.of(OpKind::kGet).latency_ns.Record(5000);
    }
    reports.push_back(report);
  }
  return reports;
}

TEST(SweepTest, TheTableHasARowForEachRun) {
  const Sweep sweep = *ParseSweep("depth:1,16");
  const std::string table = SweepTable(sweep, Reports(sweep));
  EXPECT_EQ(std::ranges::count(table, '\n'), 3);
  EXPECT_NE(table.find("\n16                     2000"), std::string::npos) << table;
}

TEST(SweepTest, TheJsonHasTheReportOfEachRun) {
  const Sweep sweep = *ParseSweep("depth:1,16");
  const auto json = nlohmann::json::parse(SweepJson(sweep, Reports(sweep)));
  EXPECT_EQ(json.at("sweep"), "depth");
  EXPECT_EQ(json.at("runs").size(), 2u);
  EXPECT_EQ(json.at("runs")[1].at("depth"), 16);
}

TEST(SweepTest, ThePictureHasARowForEachRunAndACurveForEachFigure) {
  const Sweep sweep = *ParseSweep("threads:1,2,4");
  const std::string script = SweepScript(sweep, Reports(sweep), "it's.svg");
  EXPECT_THAT(script, HasSubstr("set output 'it''s.svg'\nset multiplot layout 2,1\n"));
  EXPECT_THAT(script, ContainsRegex("<< END\n1 1000\\.0 .*\n2 2000\\.0 .*\n4 3000\\.0 .*\nEND\n"));
  for (const int column : {2, 3, 4, 5}) {
    EXPECT_THAT(script, HasSubstr("using 0:" + std::to_string(column) + ":xticlabels(1)"));
  }
}

}  // namespace
}  // namespace gannet::kvload
