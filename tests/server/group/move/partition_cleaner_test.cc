#include "server/group/move/partition_cleaner.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clocks.h"
#include "server/group/members/group_context.h"
#include "tests/server/group/move/fake_member_server.h"
#include "tests/server/group/move/many_keys.h"
#include "tests/server/memory/store/at.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

// Only the map.
class MapDirectory final : public GroupDirectory {
 public:
  GroupTerms terms() const override { return {}; }
  void Announce(const GroupMember&, std::string_view, uint64_t) override {}
  std::optional<std::string> AddressOf(const GroupMember&) const override { return std::nullopt; }
  std::optional<std::string> WantedSuccessor() const override { return std::nullopt; }
  void ForgetWantedSuccessor() override {}
  const SeenMap* Config() const override { return map ? &*map : nullptr; }
  const PartitionMoveWishes* Moves() const override { return sure ? &wishes : nullptr; }

  std::optional<SeenMap> map;
  PartitionMoveWishes wishes;
  bool sure = true;
};

// A primary of g1, in a cluster with g2, on a clock that the test sets.
class PartitionCleanerTest : public testing::Test, public FakeMemberServer {
 protected:
  PartitionCleanerTest() : store_(64 << 20, 4 * kItems) {}
  void SetUp() override {
    for (int i = 0; i < kItems; ++i) {
      ASSERT_EQ(store_.Put(KeyOf(i), "v", kNowMs).status, ReplyStatus::kOk);
    }
    for (uint32_t i = 0; i < kPartitions; ++i) own_[i] = i % 2 == 0;
    Own(own_);
  }
  // g1 has these, and g2 the others.
  void Own(const PartitionDropper::Partitions& partitions) {
    SeenMap map = {.config = {.groups = {"g1", "g2"}, .partitions = {}},
                   .mod_revision = ++map_revision_};
    for (uint32_t i = 0; i < kPartitions; ++i) map.config.partitions.push_back(!partitions[i]);
    directory_.map = map;
  }
  ServerTime Time() const override {
    now_ = now_ + step_ns_;
    return At(kNowMs);
  }
  // Polls when it wants to be, until it has looked at everything or `steps` are over. Returns how
  // long that took.
  int64_t Run(int steps = 100'000) {
    const BootTime began = now_;
    while (steps-- > 0) {
      cleaner_.Poll(now_, taking_);
      if (cleaner_.next_at() == now_ + PartitionCleaner::kIdleNs) break;
      EXPECT_GE(cleaner_.next_at(), now_ + PartitionCleaner::kPauseNsMin);
      now_ = cleaner_.next_at();
      requests_ += requests_in_a_pause_;
    }
    return now_ - began;
  }
  uint64_t requests() const override { return requests_; }
  // Returns the first item that is in a partition of the group.
  int FirstOwn() const {
    int i = 0;
    while (!own_[PartitionOf(KeyOf(i))]) ++i;
    return i;
  }
  bool Has(int i) { return store_.Get(KeyOf(i), kNowMs).has_value(); }
  void ExpectOnly(const PartitionDropper::Partitions& partitions) {
    for (int i = 0; i < kItems; ++i) ASSERT_EQ(Has(i), partitions[PartitionOf(KeyOf(i))]) << i;
  }

  TestStore store_;
  MapDirectory directory_;
  PartitionDropper::Partitions own_;
  PartitionDropper::Partitions taking_;
  mutable BootTime now_ = BootTime::FromNs(kNsPerSecond);
  int64_t step_ns_ = 0;  // how long a step takes
  uint64_t requests_ = 0;
  int64_t map_revision_ = 0;
  uint64_t requests_in_a_pause_ = 0;
  const GroupContext context_{.group = {.directory = &directory_, .name = "g1"},
                              .server = this,
                              .clocks = {.wall = MachineWallTime, .boot = [this] { return now_; }}};
  PartitionCleaner cleaner_{context_, &store_.writes()};
};

TEST_F(PartitionCleanerTest, DeletesWhatOtherGroupsOwn) {
  Run();
  ExpectOnly(own_);
}

TEST_F(PartitionCleanerTest, DeletesNothingIfThereIsNoMap) {
  directory_.map.reset();
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(store_.Stats().items, uint64_t{kItems});
}

// etcd has another one, which nobody believes.
TEST_F(PartitionCleanerTest, DeletesNothingWhileTheMapIsInDoubt) {
  directory_.sure = false;
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(store_.Stats().items, uint64_t{kItems});
  directory_.sure = true;
  Run(3);  // it has begun
  directory_.sure = false;
  const uint64_t items = store_.Stats().items;
  Run();
  EXPECT_EQ(store_.Stats().items, items);
  directory_.sure = true;
  now_ = now_ + PartitionCleaner::kIdleNs;
  Run();
  ExpectOnly(own_);
}

TEST_F(PartitionCleanerTest, DeletesNothingThatComesToTheGroup) {
  taking_ = ~own_;
  taking_.reset(PartitionOf(KeyOf(1)));
  Run();
  ExpectOnly(own_ | taking_);
  // The move was given up.
  taking_.reset();
  Run();
  ExpectOnly(own_);
}

// Not even if it had begun to.
TEST_F(PartitionCleanerTest, StopsAtOnceWhenAPartitionComes) {
  Run(10);
  const uint64_t left = store_.Stats().items;
  ASSERT_LT(left, uint64_t{kItems});
  taking_ = ~own_;
  EXPECT_EQ(Run(), 0);
  EXPECT_EQ(store_.Stats().items, left);
}

TEST_F(PartitionCleanerTest, LooksAgainOnlyIfThereIsAnotherPartitionToDrop) {
  Run();
  EXPECT_EQ(Run(), 0) << "once is enough";
  PartitionDropper::Partitions fewer = own_;
  fewer.reset(PartitionOf(KeyOf(FirstOwn())));
  Own(fewer);
  EXPECT_GT(Run(), 0);
  ExpectOnly(fewer);
  // What comes back may be filled, and given away again.
  Own(own_);
  EXPECT_EQ(Run(), 0);
  for (int i = 0; i < kItems; ++i) store_.Put(KeyOf(i), "v", kNowMs);
  Own(fewer);
  EXPECT_GT(Run(), 0);
  for (int i = 0; i < kItems; ++i) {
    const uint32_t partition = PartitionOf(KeyOf(i));
    ASSERT_EQ(Has(i), fewer[partition] || !own_[partition]) << i;
  }
}

// Partitions of several moves are given one soon after the other. One walk is for all of them.
TEST_F(PartitionCleanerTest, WaitsUntilNoneHasComeForAWhile) {
  Run();
  PartitionDropper::Partitions fewer = own_;
  for (int given = 0, i = 0; given < 5; ++given) {
    while (!fewer[PartitionOf(KeyOf(i))]) ++i;
    fewer.reset(PartitionOf(KeyOf(i)));
    Own(fewer);
    cleaner_.Poll(now_, taking_);
    now_ = now_ + (PartitionCleaner::kQuietNs - PartitionCleaner::kPauseNsMin);
    cleaner_.Poll(now_, taking_);
    ExpectOnly(own_);
  }
  EXPECT_GT(Run(), 0);
  ExpectOnly(fewer);
}

TEST_F(PartitionCleanerTest, TakesAHundredthOfTheTimeWhileClientsAreServed) {
  step_ns_ = kNsPerMs;
  const int64_t idle = Run() - PartitionCleaner::kQuietNs;
  requests_in_a_pause_ = 1;
  Own(~own_);
  for (int i = 0; i < kItems; ++i) store_.Put(KeyOf(i), "v", kNowMs);
  const int64_t busy = Run() - PartitionCleaner::kQuietNs;
  // The same number of steps.
  EXPECT_GE(busy, idle * PartitionCleaner::kShareWhenBusy / PartitionCleaner::kShareWhenIdle / 2);
}

TEST_F(PartitionCleanerTest, DoesNotPauseForLongAfterItWasStoppedWithinAStep) {
  requests_in_a_pause_ = 1;
  Run(3);
  step_ns_ = 2 * kNsPerSecond;
  const BootTime before = now_;
  cleaner_.Poll(now_, taking_);
  ASSERT_EQ(now_, before + step_ns_);
  EXPECT_EQ(cleaner_.next_at(), now_ + PartitionCleaner::kPauseNsMax);
}

}  // namespace
}  // namespace gannet
