#include "server/group/members/backup_state.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace gannet {
namespace {

// The picture in backup_state.h, without its ends.
TEST(BackupStateTest, TakesNoStepButThoseOfThePicture) {
  using enum BackupState;
  const std::set<std::pair<BackupState, BackupState>> picture = {
      {kSeeks, kFollows}, {kSeeks, kLeads},   {kFollows, kCopies}, {kFollows, kInSync},
      {kCopies, kCopied}, {kCopies, kInSync}, {kCopied, kReady},   {kCopied, kInSync},
      {kReady, kInSync},  {kInSync, kLeads},  {kInSync, kOut},     {kOut, kInSync},
      {kOut, kKeeps},     {kKeeps, kInSync},
  };
  for (int i = 0; i <= static_cast<int>(kEnds); ++i) {
    for (int j = 0; j < static_cast<int>(kEnds); ++j) {
      const auto from = static_cast<BackupState>(i);
      const auto to = static_cast<BackupState>(j);
      EXPECT_EQ(MayFollow(from, to), picture.contains({from, to})) << i << " to " << j;
    }
  }
}

TEST(BackupStateTest, EndsFromEachStateButWhereItIsOver) {
  using enum BackupState;
  for (int i = 0; i <= static_cast<int>(kEnds); ++i) {
    const auto from = static_cast<BackupState>(i);
    EXPECT_EQ(MayFollow(from, kEnds), from != kLeads && from != kEnds) << i;
  }
}

}  // namespace
}  // namespace gannet
