#include "server/group/replica/neighbours.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/protocol/example_replica.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

ReplicaHello HelloOf(uint16_t min, uint16_t max) {
  ReplicaHello hello = ExampleHello();
  hello.stream_version_min = min;
  hello.stream_version_max = max;
  return hello;
}

TEST(NeighboursTest, AMemberThatSpeaksTheStreamsVersionFits) {
  EXPECT_EQ(WhyVersionsDoNotFit(ExampleHello(), 3, kStreamVersions.max), "");
  EXPECT_EQ(WhyVersionsDoNotFit(HelloOf(1, 2), 3, 1), "");  // the next version
  EXPECT_EQ(WhyVersionsDoNotFit(HelloOf(0, 1), 3, 1), "");  // the one before, which knows it
}

TEST(NeighboursTest, AMemberThatDoesNotIsToldBoth) {
  EXPECT_THAT(WhyVersionsDoNotFit(HelloOf(2, 3), 3, 1), HasSubstr("versions 2 to 3"));
  EXPECT_THAT(WhyVersionsDoNotFit(HelloOf(0, 0), 3, 1), HasSubstr("the group 1"));
}

// A member that is in sync follows the next primary, whose layout it does not know: it READs
// nothing. Otherwise the old backups would leave a group when the first new primary takes over.
TEST(NeighboursTest, OnlyAJoinerHasToKnowThePrimarysLayout) {
  ReplicaHello hello = ExampleHello();
  hello.layout_version = 2;
  EXPECT_EQ(WhyVersionsDoNotFit(hello, 3, kStreamVersions.max), "");
  hello.history = hello.applied = hello.end = 0;
  EXPECT_THAT(WhyVersionsDoNotFit(hello, 3, kStreamVersions.max), HasSubstr("use the primary's"));
  hello.layout_version = 4;
  EXPECT_EQ(WhyVersionsDoNotFit(hello, 3, kStreamVersions.max), "");
}

TEST(NeighboursTest, AReceiverHasToKnowTheGiversLayoutAndStream) {
  ReceiverHello hello = ExampleReceiverHello();
  EXPECT_EQ(WhyVersionsDoNotFit(hello, 3, kStreamVersions.max), "");
  EXPECT_THAT(WhyVersionsDoNotFit(hello, 4, kStreamVersions.max), HasSubstr("use the primary's"));
  hello.stream_version_max = 0;
  EXPECT_THAT(WhyVersionsDoNotFit(hello, 3, 1), HasSubstr("versions 0 to 0"));
}

TEST(NeighboursTest, AJoinerOfAPrimaryThatDoesNotReadItsHelloSaysWhatTheFirstReleaseReads) {
  SpokenVersions versions;
  EXPECT_EQ(versions.Say().max, kStreamVersions.max);
  versions.OnClosedWithoutAnswer();
  EXPECT_EQ(versions.Say().min, 0);
  EXPECT_EQ(versions.Say().max, 0);
  versions.OnClosedWithoutAnswer();
  EXPECT_EQ(versions.Say().max, kStreamVersions.max) << "it was closed for another reason";
}

// The network was cut in the middle of a hello. Saying 0 for ever, it would never join again.
TEST(NeighboursTest, AJoinerThatIsRefusedSaysAllVersionsAgain) {
  SpokenVersions versions;
  versions.OnClosedWithoutAnswer();
  ASSERT_EQ(versions.Say().max, 0);
  versions.OnRefused();
  EXPECT_EQ(versions.Say().max, kStreamVersions.max);
}

// Also to a next primary that is of the release before: it cannot wait for a second link.
TEST(NeighboursTest, OneThatFollowsAStreamSaysItsVersion) {
  SpokenVersions versions;
  versions.OnStream(0);
  EXPECT_EQ(versions.Say().max, 0);
  versions.OnClosedWithoutAnswer();
  EXPECT_EQ(versions.Say().max, 0);
}

}  // namespace
}  // namespace gannet
