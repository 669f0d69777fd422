#include "server/group/members/follower_state.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "server/group/members/primary_link.h"

namespace gannet {
namespace {

TEST(FollowerStateTest, TakesNoStepButThoseOfThePicture) {
  using enum FollowerState;
  const std::set<std::pair<FollowerState, FollowerState>> picture = {{kGreets, kFollows},
                                                                     {kFollows, kCounted},
                                                                     {kGreets, kReceives},
                                                                     {kFollows, kReplaced},
                                                                     {kCounted, kReplaced}};
  for (const FollowerState from : {kGreets, kFollows, kCounted, kReplaced, kReceives}) {
    for (const FollowerState to : {kGreets, kFollows, kCounted, kReplaced, kReceives}) {
      EXPECT_EQ(MayFollow(from, to), picture.contains({from, to}))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

TEST(FollowerStateTest, ALinkIsNeverUsableAgain) {
  using enum PrimaryLinkState;
  const std::set<std::pair<PrimaryLinkState, PrimaryLinkState>> steps = {
      {kUsable, kFailed}, {kUsable, kCloses}, {kFailed, kCloses}};
  for (const PrimaryLinkState from : {kUsable, kFailed, kCloses}) {
    for (const PrimaryLinkState to : {kUsable, kFailed, kCloses}) {
      EXPECT_EQ(MayFollow(from, to), steps.contains({from, to}))
          << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

}  // namespace
}  // namespace gannet
