#include <gtest/gtest.h>

#include "proxy/jobs/memcached_commands.h"

namespace gannet::proxy {
namespace {

using std::chrono::seconds;

constexpr int64_t kNow = 1'800'000'000;
constexpr int64_t kMonth = 30 * 24 * 3600;

TEST(ExptimeTest, ZeroIsForEver) {
  const auto lifetime = ParseExptime("0", kNow);
  ASSERT_TRUE(lifetime);
  EXPECT_EQ(lifetime->ttl, seconds(0));
  EXPECT_FALSE(lifetime->over);
}

TEST(ExptimeTest, UpToAMonthCountsFromNowAndMoreSince1970) {
  EXPECT_EQ(ParseExptime("1", kNow)->ttl, seconds(1));
  EXPECT_EQ(ParseExptime(std::to_string(kMonth), kNow)->ttl, seconds(kMonth));
  EXPECT_TRUE(ParseExptime(std::to_string(kMonth + 1), kNow)->over);
  EXPECT_EQ(ParseExptime(std::to_string(kNow + 5), kNow)->ttl, seconds(5));
  EXPECT_FALSE(ParseExptime(std::to_string(kNow + 5), kNow)->over);
}

TEST(ExptimeTest, NegativeAndPastTimesAreOver) {
  EXPECT_TRUE(ParseExptime("-1", kNow)->over);
  EXPECT_TRUE(ParseExptime(std::to_string(kNow), kNow)->over);
  EXPECT_TRUE(ParseExptime(std::to_string(INT64_MIN), kNow)->over);
}

TEST(ExptimeTest, TakesTheLongestTimeOfTheStoreForALongerOne) {
  const auto lifetime = ParseExptime(std::to_string(INT64_MAX), kNow);
  ASSERT_TRUE(lifetime);
  EXPECT_GT(lifetime->ttl, seconds(100LL * 365 * 24 * 3600));
}

TEST(ExptimeTest, RefusesWhatIsNoNumber) {
  for (const char* word : {"", "x", "1x", " 1", "9223372036854775808"}) {
    EXPECT_FALSE(ParseExptime(word, kNow)) << word;
  }
}

}  // namespace
}  // namespace gannet::proxy
