#include "server/group/replica/published_lsn.h"

#include <gtest/gtest.h>

namespace gannet {
namespace {

// A primary whose workers publish later than records are committed.
struct Publishing {
  uint64_t committed = 0;
  uint64_t in_store = 0;
  uint64_t committed_meanwhile = 0;  // while it publishes
  bool waits_for_disk = false;
  PublishedLsn published;

  void Advance() {
    published.Advance(committed, [this] {
      if (waits_for_disk) return false;
      in_store = committed;
      committed += committed_meanwhile;
      return true;
    });
  }
};

// Its stream begins at 100. If it walked now, the record before would be in neither.
TEST(PublishedLsnTest, AJoinerIsNotToldWhatIsCommittedAndNotInTheStoreYet) {
  Publishing primary{.committed = 60};
  primary.Advance();
  primary.committed = 100;
  EXPECT_EQ(primary.published.ToldTo(/*in_sync=*/false, primary.committed), 60u);
  EXPECT_EQ(primary.in_store, 60u);
  primary.Advance();
  EXPECT_EQ(primary.published.ToldTo(/*in_sync=*/false, primary.committed), 100u);
  EXPECT_EQ(primary.in_store, 100u);
}

TEST(PublishedLsnTest, WhatWaitsForTheDiskIsNotToldEither) {
  Publishing primary{.committed = 60};
  primary.Advance();
  primary.committed = 100;
  primary.waits_for_disk = true;
  primary.Advance();
  EXPECT_EQ(primary.published.ToldTo(/*in_sync=*/false, primary.committed), 60u);
}

TEST(PublishedLsnTest, WhatIsCommittedMeanwhileIsNotToldEither) {
  Publishing primary{.committed = 60, .committed_meanwhile = 40};
  primary.Advance();
  EXPECT_EQ(primary.committed, 100u);
  EXPECT_EQ(primary.published.ToldTo(/*in_sync=*/false, primary.committed), 60u);
}

TEST(PublishedLsnTest, ABackupIsToldAllThatIsCommitted) {
  Publishing primary{.committed = 60};
  EXPECT_EQ(primary.published.ToldTo(/*in_sync=*/true, primary.committed), 60u);
}

}  // namespace
}  // namespace gannet
