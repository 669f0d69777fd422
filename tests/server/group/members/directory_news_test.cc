#include "server/group/members/directory_news.h"

#include <gtest/gtest.h>

#include "common/base/clocks.h"
#include "common/protocol/not_primary.h"
#include "tests/server/group/members/still_directory.h"

namespace gannet {
namespace {

class DirectoryNewsTest : public testing::Test {
 protected:
  static GroupConfiguration Of(uint64_t epoch, const GroupMember& primary) {
    return {.epoch = epoch, .primary = primary, .in_sync = {primary}};
  }

  StillDirectory directory_;
  GroupStanding standing_{1};
  const GroupContext context_{.group = {.directory = &directory_},
                              .self = kSelf,
                              .standing = &standing_,
                              .clocks = MachineClocks()};
  DirectoryNews news_{context_};
};

TEST_F(DirectoryNewsTest, ClientsAreSentToThePrimaryOnceItsAddressIsKnown) {
  news_.TellElsewhere(Of(1, kOther));
  EXPECT_EQ(standing_.elsewhere(), "");
  directory_.address = "10.0.0.1:7000";
  news_.TellElsewhere(Of(1, kOther));
  EXPECT_EQ(standing_.elsewhere(), ReasonOf({.primary = "10.0.0.1:7000", .epoch = 1}));
}

TEST_F(DirectoryNewsTest, NobodyIsSentAwayFromThePrimary) {
  directory_.address = "10.0.0.1:7000";
  news_.TellElsewhere(Of(1, kOther));
  news_.TellElsewhere(Of(2, kSelf));
  EXPECT_EQ(standing_.elsewhere(), "");
}

TEST_F(DirectoryNewsTest, TellsOfPartitionsOnceForEachRevision) {
  directory_.partitions.revision = 3;
  EXPECT_TRUE(news_.TellPartitions());
  EXPECT_EQ(standing_.partitions().revision(), 3U);
  EXPECT_FALSE(news_.TellPartitions());
  directory_.partitions.revision = 4;
  EXPECT_TRUE(news_.TellPartitions());
  EXPECT_EQ(standing_.partitions().revision(), 4U);
}

}  // namespace
}  // namespace gannet
