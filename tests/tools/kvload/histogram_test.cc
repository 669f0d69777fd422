#include "tools/kvload/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tools/kvload/random.h"

namespace gannet::kvload {
namespace {

TEST(HistogramTest, EmptyHasNoPercentiles) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.Percentile(0.5), 0u);
}

TEST(HistogramTest, SmallNumbersAreExact) {
  for (uint64_t value = 0; value < 256; ++value) {
    EXPECT_EQ(Histogram::UpperBound(Histogram::IndexOf(value)), value);
  }
}

// Golden: merged and stored figures can be compared only if the layout of buckets stays the same.
TEST(HistogramTest, BucketsAreWhereTheyWere) {
  EXPECT_EQ(Histogram::IndexOf(255), 255u);
  EXPECT_EQ(Histogram::IndexOf(256), 256u);
  EXPECT_EQ(Histogram::IndexOf(257), 256u);
  EXPECT_EQ(Histogram::IndexOf(258), 257u);
  EXPECT_EQ(Histogram::IndexOf(511), 383u);
  EXPECT_EQ(Histogram::IndexOf(512), 384u);
  EXPECT_EQ(Histogram::IndexOf(1'000'000), 1780u);
  EXPECT_EQ(Histogram::UpperBound(1780), 1'003'519u);
  EXPECT_EQ(Histogram::IndexOf(std::numeric_limits<uint64_t>::max()), 7423u);
  EXPECT_EQ(Histogram::UpperBound(7423), std::numeric_limits<uint64_t>::max());
}

TEST(HistogramTest, UpperBoundIsAtMostOnePart128Above) {
  Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t value = random.Next() >> random.Below(64);
    const uint64_t bound = Histogram::UpperBound(Histogram::IndexOf(value));
    ASSERT_GE(bound, value);
    ASSERT_LE(bound - value, value / 128) << value;
  }
}

TEST(HistogramTest, PercentilesMatchSortedNumbers) {
  Random random(2);
  Histogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 20'000; ++i) {
    values.push_back(random.Next() >> (20 + random.Below(40)));
    histogram.Record(values.back());
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.max(), values.back());
  for (const double fraction : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const auto rank = static_cast<size_t>(std::ceil(fraction * static_cast<double>(values.size())));
    const uint64_t exact = values[rank - 1];
    EXPECT_GE(histogram.Percentile(fraction), exact) << fraction;
    EXPECT_LE(histogram.Percentile(fraction), exact + exact / 128) << fraction;
  }
}

TEST(HistogramTest, MergedIsAsIfRecordedTogether) {
  Random random(3);
  Histogram together;
  Histogram parts[2];
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t value = random.Next() >> 30;
    together.Record(value);
    parts[i % 2].Record(value);
  }
  parts[0].Merge(parts[1]);
  EXPECT_EQ(parts[0].count(), together.count());
  EXPECT_EQ(parts[0].max(), together.max());
  for (const double fraction : {0.01, 0.5, 0.99}) {
    EXPECT_EQ(parts[0].Percentile(fraction), together.Percentile(fraction));
  }
}

TEST(HistogramTest, LastPercentileIsTheMaximum) {
  Histogram histogram;
  histogram.Record(1'000'001);
  EXPECT_EQ(histogram.Percentile(0.5), 1'000'001u);
  EXPECT_EQ(histogram.Percentile(1.0), 1'000'001u);
}

}  // namespace
}  // namespace gannet::kvload
