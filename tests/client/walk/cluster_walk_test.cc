// Walks through a cluster of two groups of whole servers, between which partitions move.

#include <gannet/walker.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/map_changes.h"
#include "tests/client/api/patient_options.h"
#include "tests/server/group/move/move_servers.h"

namespace gannet {
namespace {

class ClusterWalkTest : public MoveServersTest {
 protected:
  static constexpr int kKeys = 1000;

  void SetUp() override {
    StartAll();
    for (uint16_t i = kPartitions / 2; i < kPartitions; ++i) upper_.push_back(i);
    Move(upper_, "g1", "g2");
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = absl::StrCat("key", i);
      const bool upper = PartitionOf(key) >= kPartitions / 2;
      Put(upper ? 1 : 0, key, "now");
      keys_.push_back(key);
    }
    for (size_t group = 0; group < 2; ++group) ExpectPublished(group);
  }
  // Waits until everybody finds what was put.
  void ExpectPublished(size_t group) {
    Put(group, "last", "put");
    ASSERT_TRUE(StepUntil([&] { return Has(group, "last", "put"); }));
    groups_[group].server->writes().Delete("last", {}, Time(group));
    ASSERT_TRUE(StepUntil([&] { return ItemAt(group, "last").empty(); }));
  }
  // Gives partitions away, at once and without copying anything. REQUIRES: no client READs what
  // moves, as nobody waits until older leases are over.
  void Move(const std::vector<uint16_t>& partitions, const char* from, const char* to) {
    ClusterConfig map = map_.map_.config;
    for (size_t i = 0; i < partitions.size(); i += 100) {
      const auto some =
          std::span(partitions).subspan(i, std::min<size_t>(100, partitions.size() - i));
      map = ClosePartitions(map, from, some).value();
      map = GivePartitions(map, to, some, map.revision).value();
    }
    map_.Change(map);
    ASSERT_TRUE(StepUntil([&] { return Knows(0, map.revision) && Knows(1, map.revision); }));
  }
  bool Knows(size_t group, uint64_t revision) {
    return groups_[group].server->context().standing->partitions().revision() == revision;
  }
  void Put(size_t group, const std::string& key, const std::string& value) {
    const auto put = groups_[group].server->writes().Put(key, value, {}, {}, Time(group));
    ASSERT_EQ(put.outcome.status, ReplyStatus::kOk);
    Step();
  }
  bool Has(size_t group, const std::string& key, const std::string& value) {
    return ItemAt(group, key).ends_with(absl::StrCat(" ", value));
  }
  // Runs a client's calls in a thread of their own, and steps the servers meanwhile. A call of
  // Await has this thread do something, and waits for that.
  void Run(const std::function<void()>& client) {
    std::thread thread([&] {
      client();
      over_ = true;
    });
    while (!over_) {
      if (!wants_) {
        Step();
        continue;
      }
      act_();
      wants_ = false;
    }
    thread.join();
    over_ = false;
  }
  void Await(std::function<void()> act) {
    act_ = std::move(act);
    wants_ = true;
    while (wants_) std::this_thread::yield();
  }
  std::unique_ptr<Walker> Connect(size_t group = 0, bool alone = false) {
    auto walker = Walker::Connect(addresses_[group], PatientOptions(),
                                  {.reads_per_second = 0, .this_server_alone = alone});
    EXPECT_TRUE(walker.ok()) << walker.status();
    return walker.ok() ? *std::move(walker) : nullptr;
  }
  void Take(const WalkedItem& item) { shown_[std::string(item.key)].emplace_back(item.value); }
  bool Take(const WalkedItem& item, bool goes_on) { return Take(item), goes_on; }

  std::vector<uint16_t> upper_;
  std::map<std::string, std::vector<std::string>> shown_;  // the values of each key

 private:
  std::function<void()> act_;
  std::atomic<bool> wants_ = false;
  std::atomic<bool> over_ = false;
};

// The giver has not deleted what it gave, and the receiver has what comes to it.
TEST_F(ClusterWalkTest, ShowsEachKeyOnceAndOnlyWhereItIsOwned) {
  for (const std::string& key : keys_) {
    Put(PartitionOf(key) >= kPartitions / 2 ? 0 : 1, key, "copy");
  }
  for (size_t group = 0; group < 2; ++group) ExpectPublished(group);
  for (size_t group = 0; group < 2; ++group) {
    shown_.clear();
    Run([&] {
      const auto walker = Connect(group);
      ASSERT_NE(walker, nullptr);
      const auto status = walker->Walk([&](const WalkedItem& item) { return Take(item, true); });
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(walker->progress().items, uint64_t{kKeys});
      EXPECT_EQ(walker->progress().done, 1);
    });
    EXPECT_EQ(shown_.size(), keys_.size()) << "from " << group;
    for (const auto& [key, values] : shown_) {
      EXPECT_EQ(values, std::vector<std::string>{"now"}) << key << " from " << group;
    }
  }
}

TEST_F(ClusterWalkTest, OfOneServerAloneShowsWhatItHas) {
  size_t lower = 0;
  for (const std::string& key : keys_) lower += PartitionOf(key) < kPartitions / 2;
  Run([&] {
    const auto walker = Connect(0, /*alone=*/true);
    ASSERT_NE(walker, nullptr);
    EXPECT_TRUE(walker->Walk([&](const WalkedItem& item) { return Take(item, true); }).ok());
  });
  EXPECT_EQ(shown_.size(), lower);
}

// What really moved was written since by who has it now. The giver's memory has the old values
// still.
TEST_F(ClusterWalkTest, ShowsNothingOldOfWhatMovesMeanwhile) {
  constexpr uint16_t kGone = 100;
  const auto moves = [](const std::string& key) { return PartitionOf(key) < kGone; };
  int shown = 0;
  int old = 0;  // shown after the move
  Run([&] {
    const auto walker = Connect();
    ASSERT_NE(walker, nullptr);
    const auto status = walker->Walk([&](const WalkedItem& item) {
      if (++shown == 10) {
        Await([&] {
          for (uint16_t i = 0; i < kGone; ++i) map_.Wish(i);
          ASSERT_TRUE(StepUntil([&] { return map_.wishes_.empty(); }));
          for (const std::string& key : keys_) {
            if (moves(key)) Put(1, key, "new");
          }
          ExpectPublished(1);
        });
      }
      old += shown >= 10 && moves(std::string(item.key)) && item.value != "new";
      return Take(item, true);
    });
    EXPECT_TRUE(status.ok()) << status;
  });
  EXPECT_LE(old, 32) << "those that were READ before the move";
  for (const std::string& key : keys_) {
    ASSERT_FALSE(shown_[key].empty()) << key;
    if (moves(key)) {
      EXPECT_EQ(shown_[key].back(), "new") << key;
    } else {
      EXPECT_EQ(shown_[key], std::vector<std::string>{"now"}) << key;
    }
  }
}

TEST_F(ClusterWalkTest, InPartsBeginsAnewIfSomethingMovedMeanwhile) {
  constexpr int kPart = 125;
  int parts = 0;
  Run([&] {
    uint64_t position = 0;
    do {
      // Different Walkers may walk the parts.
      const auto walker = Connect(parts % 2);
      ASSERT_NE(walker, nullptr);
      const auto next = walker->WalkPart({.position = position, .items_min = kPart},
                                         [&](const WalkedItem& item) { Take(item); });
      ASSERT_TRUE(next.ok()) << next.status();
      EXPECT_EQ(*next >> Walker::kPositionBits, 0u);
      position = *next;
      ++parts;
      // Once the first group has been walked through, something moves to it.
      if (parts == 6) {
        Await([&] {
          Move(upper_, "g2", "g1");
          for (const std::string& key : keys_) {
            if (PartitionOf(key) >= kPartitions / 2) Put(0, key, "now");
          }
          ExpectPublished(0);
        });
      }
    } while (position != 0);
  });
  EXPECT_GE(parts, 10) << "8 would be enough if it did not begin anew";
  EXPECT_EQ(shown_.size(), keys_.size());
}

// Where two parts meet, a key of the last home is shown by both with a probability of about 1 %: a
// position has 6 bits more than there are homes (RegionWalk::WalkPart). No key is where more meet.
TEST_F(ClusterWalkTest, InPartsShowsFewKeysTwiceIfNothingMoves) {
  int parts = 0;
  Run([&] {
    const auto walker = Connect();
    ASSERT_NE(walker, nullptr);
    uint64_t position = 0;
    do {
      const auto next = walker->WalkPart({.position = position, .items_min = 30},
                                         [&](const WalkedItem& item) { Take(item); });
      ASSERT_TRUE(next.ok()) << next.status();
      position = *next;
      ++parts;
    } while (position != 0);
  });
  EXPECT_EQ(shown_.size(), keys_.size());
  int twice = 0;
  for (const auto& [key, values] : shown_) {
    EXPECT_LE(values.size(), 2u) << key;
    twice += values.size() == 2;
  }
  EXPECT_GE(parts, 20);
  EXPECT_LE(twice, parts / 3);
}

TEST_F(ClusterWalkTest, WaitsForWhatNobodyServes) {
  const auto partition = static_cast<uint16_t>(PartitionOf(keys_[0]));
  const std::span closed(&partition, 1);
  const char* owner = partition < kPartitions / 2 ? "g1" : "g2";
  map_.Change(ClosePartitions(map_.map_.config, owner, closed).value());
  const uint64_t revision = map_.map_.config.revision;
  ASSERT_TRUE(StepUntil([&] { return Knows(0, revision) && Knows(1, revision); }));
  const auto in_it = std::ranges::count_if(
      keys_, [&](const std::string& key) { return PartitionOf(key) == partition; });
  bool open = false;
  Run([&] {
    const auto walker = Connect();
    ASSERT_NE(walker, nullptr);
    const auto status = walker->Walk([&](const WalkedItem& item) {
      EXPECT_TRUE(open || PartitionOf(item.key) != partition);
      Take(item);
      if (!open && std::ssize(shown_) == kKeys - in_it) {
        open = true;
        Await([&] { map_.Change(ReopenPartitions(map_.map_.config, closed).value()); });
      }
      return true;
    });
    EXPECT_TRUE(status.ok()) << status;
  });
  EXPECT_EQ(shown_.size(), keys_.size());
}

}  // namespace
}  // namespace gannet
