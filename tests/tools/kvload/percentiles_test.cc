#include "tools/kvload/percentiles.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace gannet::kvload {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Splits lines and columns as HdrHistogram's plotter does: by white space, without comments.
Rows RowsOf(const std::string& text) {
  Rows rows;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == '#') continue;
    rows.push_back(absl::StrSplit(line, ' ', absl::SkipEmpty()));
  }
  return rows;
}

double Number(const std::string& text) {
  double number = -1;
  EXPECT_TRUE(absl::SimpleAtod(text, &number)) << text;
  return number;
}

TEST(PercentilesTest, RowsRiseToTheMaximumAt100Percent) {
  Histogram histogram;
  for (uint64_t i = 1; i <= 100'000; ++i) histogram.Record(i * 1000);
  const Rows rows = RowsOf(PercentilesText(histogram));
  ASSERT_GT(rows.size(), 40u);
  EXPECT_EQ(rows[0],
            (std::vector<std::string>{"Value", "Percentile", "TotalCount", "1/(1-Percentile)"}));
  double value = 0;
  double share = -1;
  for (size_t i = 1; i + 1 < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), 4u);
    EXPECT_GE(Number(rows[i][0]), value);
    EXPECT_GT(Number(rows[i][1]), share);
    value = Number(rows[i][0]);
    share = Number(rows[i][1]);
    EXPECT_NEAR(value / 100'000, share, 0.01);
    EXPECT_GE(Number(rows[i][2]), share * 100'000);
    EXPECT_NEAR(Number(rows[i][3]) * (1 - share), 1, 0.02);
  }
  EXPECT_EQ(rows.back(), (std::vector<std::string>{"100000.000", "1.000000000000", "100000"}));
}

TEST(PercentilesTest, EndsWithMeanAndMaximum) {
  Histogram histogram;
  for (const uint64_t ns : {100'000, 200'000, 300'000}) histogram.Record(ns);
  const std::string text = PercentilesText(histogram);
  EXPECT_NE(text.find("#[Max     =      300.000, Total count    =            3]"),
            std::string::npos)
      << text;
  const size_t mean = text.find("#[Mean    =");
  ASSERT_NE(mean, std::string::npos);
  EXPECT_NEAR(Number(text.substr(mean + 12, 12)), 200, 2);
}

TEST(PercentilesTest, AnEmptyHistogramHasNoRows) {
  EXPECT_EQ(RowsOf(PercentilesText(Histogram())).size(), 1u);
}

}  // namespace
}  // namespace gannet::kvload
