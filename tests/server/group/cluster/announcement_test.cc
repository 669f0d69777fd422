#include "server/group/cluster/announcement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/protocol/versions.h"

namespace gannet {
namespace {

using enum EtcdTxnResult::Outcome;

constexpr int64_t kStart = 5 * kNsPerSecond;
constexpr int64_t kMinute = 60 * kNsPerSecond;

class AnnouncementTest : public testing::Test {
 protected:
  static NodeInfo Info(uint64_t applied, uint64_t incarnation = 0xa) {
    return {.incarnation = incarnation, .address = "h:1", .applied = applied};
  }
  // It has announced itself at kStart, with revision 5.
  void Announced() {
    announcement_.Want(Info(1));
    ASSERT_TRUE(Due(kStart));
    announcement_.OnResult({.outcome = kWon, .revision = 5});
  }

  std::optional<EtcdTxn> Due(int64_t now) { return announcement_.Due(now, nodes_); }

  Announcement announcement_{
      {.node_key = "key", .version_key = "version", .disk_key = "disk", .version = "0.2.0"}};
  size_t nodes_ = 3;
};

// The answer to a write and the watch take different ways.
TEST_F(AnnouncementTest, WhatCameAfterAWriteCountsThoughItIsToldBeforeTheAnswer) {
  announcement_.Want(Info(1));
  ASSERT_TRUE(Due(kStart));
  announcement_.Saw(Info(1), 5);
  announcement_.Saw(NodeInfo{}, 6);  // garbage
  announcement_.OnResult({.outcome = kWon, .revision = 5});
  EXPECT_FALSE(announcement_.replaced());
  const auto again = Due(kStart + Announcement::kPauseNs);
  ASSERT_TRUE(again) << "nobody can read what is there";
  EXPECT_EQ(again->compares[0].mod_revision, 6);
}

TEST_F(AnnouncementTest, AProcessThatCameAfterTheFirstWriteHasTheNameThoughTheAnswerIsLate) {
  announcement_.Want(Info(1));
  ASSERT_TRUE(Due(kStart));
  announcement_.Saw(Info(1, 0xb), 6);
  announcement_.OnResult({.outcome = kWon, .revision = 5});
  EXPECT_TRUE(announcement_.replaced());
  EXPECT_FALSE(Due(kStart + kMinute));
}

TEST_F(AnnouncementTest, IsWrittenAtOnceOverWhatIsThere) {
  EXPECT_FALSE(Due(kStart));
  announcement_.Saw(Info(1, 0xb), 3);  // an earlier process
  announcement_.Want(Info(1));
  const auto txn = Due(kStart);
  ASSERT_TRUE(txn);
  ASSERT_EQ(txn->compares.size(), 1u);
  EXPECT_EQ(txn->compares[0].key, "key");
  EXPECT_EQ(txn->compares[0].mod_revision, 3);
  ASSERT_EQ(txn->puts.size(), 2u);
  EXPECT_EQ(txn->puts[0].key, "key");
  EXPECT_EQ(txn->puts[0].value, Encode(Info(1)));
  EXPECT_EQ(txn->puts[1].key, "version");
  EXPECT_EQ(
      txn->puts[1].value,
      Encode(NodeVersion{
          .incarnation = 0xa, .version = "0.2.0", .moves = true, .stream = kStreamVersions.max}));
  EXPECT_FALSE(Due(kStart + 10 * kNsPerSecond)) << "one at a time";
  announcement_.OnResult({.outcome = kWon, .revision = 5});
  EXPECT_FALSE(announcement_.replaced());
}

TEST_F(AnnouncementTest, WhatIsOnTheDiskIsWrittenTogetherWithIt) {
  const NodeDisk disk = {.incarnation = 0xa, .run = 0x9, .history = 0x11, .applied = 7};
  announcement_.Want(Info(1));
  announcement_.WantDisk(disk);
  const auto txn = Due(kStart);
  ASSERT_TRUE(txn);
  ASSERT_EQ(txn->puts.size(), 3u);
  EXPECT_EQ(txn->puts[2].key, "disk");
  EXPECT_EQ(txn->puts[2].value, Encode(disk));
  announcement_.OnResult({.outcome = kWon, .revision = 5});
  announcement_.Want(Info(2));
  ASSERT_EQ(Due(kStart + kMinute)->puts.size(), 1u) << "it has not changed";
  announcement_.OnResult({.outcome = kWon, .revision = 6});
  announcement_.NotThere(6);
  EXPECT_EQ(Due(kStart + kMinute + kNsPerSecond)->puts.size(), 3u);
}

TEST_F(AnnouncementTest, HowFarItIsIsWrittenOnceAMinute) {
  Announced();
  EXPECT_FALSE(Due(kStart + kMinute)) << "nothing has changed";
  announcement_.Want(Info(2));
  EXPECT_FALSE(Due(kStart + kMinute - 1));
  const auto txn = Due(kStart + kMinute);
  ASSERT_TRUE(txn);
  EXPECT_EQ(txn->compares[0].mod_revision, 5);
  EXPECT_EQ(txn->puts.size(), 1u) << "the version does not change";
}

// etcd keeps each of them until somebody compacts it.
TEST_F(AnnouncementTest, AnHourOfWritesIsSixtyWritesInEtcd) {
  Announced();
  int writes = 0;
  for (int64_t second = 1; second <= 3600; ++second) {
    announcement_.Want(Info(static_cast<uint64_t>(second)));
    if (!Due(kStart + second * kNsPerSecond)) continue;
    ++writes;
    announcement_.OnResult({.outcome = kWon, .revision = 5 + writes});
  }
  EXPECT_EQ(writes, 60);
}

// Its role has changed, so how far it is may be the last that is to be known of it.
TEST_F(AnnouncementTest, IsWrittenSoonIfThatIsWanted) {
  Announced();
  announcement_.Hurry();
  announcement_.Want(Info(2));
  EXPECT_FALSE(Due(kStart + kNsPerSecond - 1));
  ASSERT_TRUE(Due(kStart + kNsPerSecond));
  announcement_.OnResult({.outcome = kWon, .revision = 6});
  announcement_.Want(Info(3));
  EXPECT_FALSE(Due(kStart + kMinute)) << "once";
  ASSERT_TRUE(Due(kStart + kNsPerSecond + kMinute));
  announcement_.Hurry();  // meanwhile
  announcement_.OnResult({.outcome = kWon, .revision = 7});
  announcement_.Want(Info(4));
  EXPECT_TRUE(Due(kStart + 2 * kNsPerSecond + kMinute));
}

// An etcd that is full takes nothing, and then there is no fail-over.
TEST_F(AnnouncementTest, IsWrittenNowAndThenThoughNothingHasChanged) {
  Announced();
  EXPECT_FALSE(Due(kStart + 10 * kMinute - 1));
  EXPECT_TRUE(Due(kStart + 10 * kMinute));
}

TEST_F(AnnouncementTest, SaysWhyEtcdTakesNothingOnceThatHasBeenSoForAWhile) {
  Announced();
  announcement_.Want(Info(2));
  int64_t now = kStart + kMinute;
  for (const auto outcome : {kFailed, kUnknown}) {
    EXPECT_EQ(announcement_.WhyNotWritten(now), "");
    ASSERT_TRUE(Due(now));
    announcement_.OnResult({.outcome = outcome, .status = absl::UnavailableError("no space")});
    EXPECT_FALSE(Due(now + Announcement::kPauseOfFailuresNs - 1));
    now += Announcement::kPauseOfFailuresNs;
  }
  EXPECT_EQ(announcement_.WhyNotWritten(now - 1), "");
  EXPECT_EQ(announcement_.WhyNotWritten(now), "no space");
  ASSERT_TRUE(Due(now));
  announcement_.OnResult({.outcome = kWon, .revision = 6});
  EXPECT_EQ(announcement_.WhyNotWritten(now), "");
}

// Otherwise etcd would tell 3,000 nodes of 3,000 writes, each second.
TEST_F(AnnouncementTest, ManyNodesTellSeldomHowFarTheyAre) {
  nodes_ = 3000;
  Announced();
  announcement_.Want(Info(2));
  EXPECT_FALSE(Due(kStart + 300 * kNsPerSecond - 1));
  ASSERT_TRUE(Due(kStart + 300 * kNsPerSecond));
  // Others must know soon that it is there at all.
  announcement_.OnResult({.outcome = kRefused});
  EXPECT_TRUE(Due(kStart + 301 * kNsPerSecond)) << "somebody has deleted it";
}

TEST_F(AnnouncementTest, IsWrittenAgainIfTheResultIsUnknown) {
  announcement_.Want(Info(1));
  ASSERT_TRUE(Due(kStart));
  announcement_.OnResult({.outcome = kUnknown});
  EXPECT_FALSE(Due(kStart + 1));
  ASSERT_TRUE(Due(kStart + 5 * kNsPerSecond));
  // The first transaction had won after all, so the second one is refused.
  announcement_.OnResult(
      {.outcome = kRefused,
       .current = {{.key = "key", .value = Encode(Info(1)), .mod_revision = 6}}});
  EXPECT_FALSE(announcement_.replaced());
  EXPECT_EQ(Due(kStart + 6 * kNsPerSecond)->compares[0].mod_revision, 6);
}

// Two start at the same time: the later one has the name.
TEST_F(AnnouncementTest, GoesOverOneThatCameFirst) {
  announcement_.Want(Info(1));
  ASSERT_TRUE(Due(kStart));
  announcement_.OnResult(
      {.outcome = kRefused,
       .current = {{.key = "key", .value = Encode(Info(1, 0xb)), .mod_revision = 6}}});
  EXPECT_FALSE(announcement_.replaced());
  EXPECT_EQ(Due(kStart + kNsPerSecond)->compares[0].mod_revision, 6);
}

TEST_F(AnnouncementTest, EndsWhenALaterOneHasTheName) {
  Announced();
  announcement_.Saw(Info(1, 0xb), 5);  // not newer than its own
  EXPECT_FALSE(announcement_.replaced());
  announcement_.Saw(Info(1, 0xb), 6);
  EXPECT_TRUE(announcement_.replaced());
  announcement_.Want(Info(2));
  EXPECT_FALSE(Due(kStart + 10 * kNsPerSecond)) << "two would take turns for ever";
}

// The group counts on what that process has.
TEST_F(AnnouncementTest, OneInSyncKeepsTheName) {
  Announced();
  announcement_.KeepName(true);
  announcement_.Saw(Info(1, 0xb), 6);
  EXPECT_FALSE(announcement_.replaced());
  const auto txn = Due(kStart + kNsPerSecond);
  ASSERT_TRUE(txn);
  EXPECT_EQ(txn->compares[0].mod_revision, 6);
  EXPECT_EQ(txn->puts[0].value, Encode(Info(1)));
  announcement_.OnResult({.outcome = kWon, .revision = 7});
  announcement_.KeepName(false);  // it is not in sync any more
  announcement_.Saw(Info(1, 0xb), 8);
  EXPECT_TRUE(announcement_.replaced());
  announcement_.KeepName(true);  // it did not know yet that it is
  EXPECT_FALSE(announcement_.replaced());
  EXPECT_EQ(Due(kStart + 2 * kNsPerSecond)->compares[0].mod_revision, 8);
}

// Only a later process of the node ends this one.
TEST_F(AnnouncementTest, WhatNobodyCanReadIsWrittenOver) {
  Announced();
  announcement_.Saw({}, 6);
  EXPECT_FALSE(announcement_.replaced());
  auto txn = Due(kStart + kNsPerSecond);
  ASSERT_TRUE(txn);
  EXPECT_EQ(txn->compares[0].mod_revision, 6);
  EXPECT_EQ(txn->puts[0].value, Encode(Info(1)));
  announcement_.OnResult(
      {.outcome = kRefused, .current = {{.key = "key", .value = "###", .mod_revision = 7}}});
  EXPECT_FALSE(announcement_.replaced());
  txn = Due(kStart + 2 * kNsPerSecond);
  ASSERT_TRUE(txn);
  EXPECT_EQ(txn->compares[0].mod_revision, 7);
}

// etcd may be restored from a backup, in which an earlier process is there.
TEST_F(AnnouncementTest, ARefusalAloneDoesNotEndIt) {
  Announced();
  announcement_.Want(Info(2));
  ASSERT_TRUE(Due(kStart + kMinute));
  announcement_.OnResult(
      {.outcome = kRefused,
       .current = {{.key = "key", .value = Encode(Info(1, 0x9)), .mod_revision = 16}}});
  EXPECT_FALSE(announcement_.replaced());
  announcement_.Saw({}, 16);  // it was restored
  EXPECT_FALSE(announcement_.replaced());
  EXPECT_EQ(Due(kStart + kMinute + kNsPerSecond)->compares[0].mod_revision, 16);
  announcement_.OnResult({.outcome = kRefused});
  announcement_.Saw(Info(1, 0x9), 17);
  EXPECT_TRUE(announcement_.replaced());
}

TEST_F(AnnouncementTest, AnAddressThatItHasNotWrittenIsWrittenOver) {
  Announced();
  NodeInfo seen = Info(1);
  announcement_.Saw(seen, 6);
  EXPECT_FALSE(Due(kStart + kNsPerSecond));
  seen.address = "elsewhere:1";
  announcement_.Saw(seen, 7);
  EXPECT_FALSE(announcement_.replaced());
  EXPECT_TRUE(Due(kStart + kNsPerSecond));
}

TEST_F(AnnouncementTest, IsWrittenAgainWhenItsKeyWasDeleted) {
  Announced();
  announcement_.Want(Info(2));
  ASSERT_TRUE(Due(kStart + kMinute));
  announcement_.OnResult({.outcome = kRefused});
  EXPECT_FALSE(announcement_.replaced());
  EXPECT_EQ(Due(kStart + kMinute + kNsPerSecond)->compares[0].mod_revision, 0);
}

// Whoever deletes it asks for a sign of life.
TEST_F(AnnouncementTest, IsWrittenAgainThoughNothingHasChangedIfItsKeyIsGone) {
  Announced();
  announcement_.NotThere(4);
  EXPECT_FALSE(Due(kStart + kNsPerSecond)) << "the watch has not told of the write yet";
  announcement_.NotThere(6);
  const auto txn = Due(kStart + kNsPerSecond);
  ASSERT_TRUE(txn);
  EXPECT_EQ(txn->compares[0].mod_revision, 0);
  EXPECT_EQ(txn->puts[0].value, Encode(Info(1)));
}

TEST_F(AnnouncementTest, IsWrittenAgainIfTheWatchTellsOfTheDeletionBeforeTheAnswerComes) {
  announcement_.Want(Info(1));
  ASSERT_TRUE(Due(kStart));
  announcement_.Saw(Info(1, 0xa), 5);  // the watch
  announcement_.NotThere(6);
  announcement_.OnResult({.outcome = kWon, .revision = 5});
  announcement_.NotThere(6);
  const auto txn = Due(kStart + kNsPerSecond);
  ASSERT_TRUE(txn);
  EXPECT_EQ(txn->compares[0].mod_revision, 0);
}

TEST_F(AnnouncementTest, StandsAsLongAsTheKeyNamesThisProcess) {
  EXPECT_FALSE(announcement_.Standing());
  announcement_.Want(Info(1));
  const auto standing = announcement_.Standing();
  ASSERT_TRUE(standing);
  EXPECT_EQ(standing->key, "key");
  EXPECT_THAT(Encode(Info(7)), testing::StartsWith(standing->value_begins));
  EXPECT_THAT(Encode(Info(7, 0xab)), testing::Not(testing::StartsWith(standing->value_begins)));
}

}  // namespace
}  // namespace gannet
