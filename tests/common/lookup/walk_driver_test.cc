#include "common/lookup/walk_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "softverbs/tests/support/test_seed.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

using Outcome = WalkDriver::Outcome;

constexpr uint64_t kKeys = 500;
constexpr uint32_t kPlaces = 8;
constexpr int kStepsMax = 100'000;

// Walks through a store's memory. Its READs are done in any order, some steps later.
class WalkDriverTest : public testing::Test, protected WalkReader {
 protected:
  WalkDriverTest() {
    for (uint64_t i = 0; i < kKeys; ++i) {
      EXPECT_EQ(store_.Put("key" + std::to_string(i), "v").status, ReplyStatus::kOk);
    }
    const Superblock& superblock = store_->superblock();
    view_.incarnation = superblock.incarnation;
    view_.hash_seed = superblock.hash_seed;
    view_.region_bytes = superblock.region_bytes;
    view_.index = superblock.index;
    view_.next = superblock.next_index;
  }
  // Steps until the walk waits for nothing but READs, and ends some of those; until it is over.
  Outcome Drive() {
    for (int steps = 0; steps < kStepsMax; ++steps) {
      const Outcome outcome = driver_.Step();
      if (outcome == Outcome::kGoesOn) continue;
      if (outcome != Outcome::kWaits) return outcome;
      EndSomeReads();
    }
    return Outcome::kWaits;
  }
  void EndSomeReads() {
    std::ranges::shuffle(under_way_, random_);
    const size_t n = std::min(under_way_.size(), 1 + random_() % kPlaces);
    for (size_t i = 0; i < n; ++i) {
      const auto [place, read] = under_way_.back();
      under_way_.pop_back();
      const auto memory = store_.region().subspan(read.offset, read.bytes);
      std::ranges::copy(memory, copies_[place].begin());
      driver_.OnRead({&place, 1});
    }
  }

  bool BeginReads(std::span<const PlacedRead> reads) override {
    for (const PlacedRead& read : reads) {
      EXPECT_LT(read.place, kPlaces);
      EXPECT_EQ(std::ranges::count(under_way_, read.place, &PlacedRead::place), 0);
      under_way_.push_back(read);
    }
    most_under_way_ = std::max(most_under_way_, under_way_.size());
    return !fails_;
  }
  int64_t PostedNs() const override { return 0; }
  int64_t NowNs() const override { return 0; }
  const std::byte* CopyAt(uint32_t place) const override { return copies_[place].data(); }
  Taken OnItem(size_t, const IndexWalk::Item& item) override {
    if (puts_off_ && random_() % 2 == 0) return Taken::kLater;
    ++shown_[std::string(item.key)];
    return shown_.size() < stop_at_ ? Taken::kYes : Taken::kStop;
  }
  bool FinishItems() override { return ++asked_to_finish_ % 2 == 0; }
  bool WantIndex() override { return true; }

  std::mt19937_64 random_{test_support::TestSeed()};
  TestStore store_{64 << 20, 2000, false};
  IndexView view_;
  IndexWalk walk_{&view_, nullptr, 0, IndexWalk::Windows::kReadAgain};
  WalkDriver driver_{&walk_, this, kPlaces, /*now_ns=*/0};
  std::vector<PlacedRead> under_way_;
  std::vector<std::vector<std::byte>> copies_{kPlaces,
                                              std::vector<std::byte>(WalkDriver::kPlaceBytes)};
  std::map<std::string, int> shown_;
  size_t most_under_way_ = 0;
  size_t stop_at_ = SIZE_MAX;
  int asked_to_finish_ = 0;
  bool puts_off_ = false;
  bool fails_ = false;
};

TEST_F(WalkDriverTest, ShowsEachItemOnceInWhicheverOrderREADsAreDone) {
  EXPECT_EQ(Drive(), Outcome::kDone);
  EXPECT_EQ(shown_.size(), kKeys);
  for (const auto& [key, times] : shown_) EXPECT_EQ(times, 1) << key;
  EXPECT_EQ(most_under_way_, kPlaces);
  EXPECT_FALSE(driver_.reads());
}

TEST_F(WalkDriverTest, ShowsAgainWhatIsPutOff) {
  puts_off_ = true;
  EXPECT_EQ(Drive(), Outcome::kDone);
  EXPECT_EQ(shown_.size(), kKeys);
  for (const auto& [key, times] : shown_) EXPECT_EQ(times, 1) << key;
}

TEST_F(WalkDriverTest, EndsIfItsReaderWantsNoMore) {
  stop_at_ = 100;
  EXPECT_EQ(Drive(), Outcome::kStopped);
  EXPECT_EQ(shown_.size(), 100u);
}

TEST_F(WalkDriverTest, EndsIfItsReaderCannotREAD) {
  fails_ = true;
  EXPECT_EQ(Drive(), Outcome::kFailed);
}

TEST_F(WalkDriverTest, SaysForHowLongTheWalkHasNotAdvanced) {
  EXPECT_EQ(driver_.StuckNs(5), 5);
  ASSERT_EQ(Drive(), Outcome::kDone);
  EXPECT_EQ(driver_.StuckNs(9), 0) << "it has advanced";
  EXPECT_EQ(driver_.StuckNs(11), 2);
}

}  // namespace
}  // namespace gannet
