#include "server/rpc/send_queue_use.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace gannet {
namespace {

Resource Buffer(uint32_t index) { return {Resource::Kind::kReplyBuffer, index}; }

TEST(SendQueueTest, ReleasesInOrderUpToTheCompletedPosition) {
  SendQueueUse queue(8);
  std::vector<uint32_t> positions;
  for (uint32_t i = 0; i < 5; ++i) positions.push_back(queue.Add(Buffer(i), false).position);
  std::vector<uint32_t> released;
  const auto release = [&](Resource resource) { released.push_back(resource.index); };
  queue.Complete(positions[2], release);
  EXPECT_EQ(released, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(queue.in_queue(), 2u);
  queue.CompleteAll(release);
  EXPECT_EQ(released, (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(queue.in_queue(), 0u);
}

TEST(SendQueueTest, KeepsOnePlaceForTheDrain) {
  SendQueueUse queue(4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue.HasRoom());
    queue.Add({}, false);
  }
  EXPECT_FALSE(queue.HasRoom());
}

TEST(SendQueueTest, PositionsThatAreNotInTheQueueReleaseNothingTwice) {
  SendQueueUse queue(8);
  const uint32_t first = queue.Add(Buffer(1), false).position;
  const uint32_t second = queue.Add(Buffer(2), false).position;
  int released = 0;
  const auto release = [&](Resource) { ++released; };
  queue.Complete(second, release);
  queue.Complete(first, release);
  queue.Complete(second, release);
  EXPECT_EQ(released, 2);
  EXPECT_EQ(queue.in_queue(), 0u);
}

TEST(SendQueueTest, PositionsWrap) {
  SendQueueUse queue(5, /*start=*/UINT32_MAX - 100);
  uint32_t expected = 0;
  uint32_t added = 0;
  for (int i = 0; i < 300; ++i) {
    uint32_t position = 0;
    while (queue.HasRoom()) position = queue.Add(Buffer(added++), false).position;
    queue.Complete(position, [&](Resource resource) { ASSERT_EQ(resource.index, expected++); });
  }
  EXPECT_EQ(expected, added);
}

TEST(SendQueueTest, SignalsWhatIsWantedAndEveryFew) {
  SendQueueUse queue(112);
  EXPECT_TRUE(queue.Add({}, true).signaled);
  uint32_t unsignaled = 0;
  while (!queue.Add({}, false).signaled) ++unsignaled;
  EXPECT_EQ(unsignaled, SendQueueUse::kSignalEvery - 1);
}

TEST(SendQueueTest, AShortQueueIsNeverFullOfUnsignaledRequests) {
  for (uint32_t places = 3; places < 100; ++places) {
    SendQueueUse queue(places);
    bool signaled = false;
    while (queue.HasRoom()) {
      signaled |= queue.Add({}, false).signaled;
    }
    EXPECT_TRUE(signaled) << places;
  }
}

TEST(SendQueueTest, ReleasesNothingForWhatKeepsNothingBusy) {
  SendQueueUse queue(8);
  queue.Add({}, false);
  queue.Add(Buffer(1), false);
  const uint32_t last = queue.Add({}, false).position;
  std::vector<uint32_t> released;
  queue.Complete(last, [&](Resource resource) { released.push_back(resource.index); });
  EXPECT_EQ(released, std::vector<uint32_t>{1});
  EXPECT_EQ(queue.in_queue(), 0u);
}

TEST(SendQueueTest, KnowsWhetherACompletionIsStillToCome) {
  SendQueueUse queue(64);
  EXPECT_FALSE(queue.AwaitsSignaled());
  queue.Add({}, false);
  EXPECT_FALSE(queue.AwaitsSignaled()) << "nobody will tell of it";
  queue.SignalNext();
  const SendQueueUse::Place place = queue.Add({}, false);
  EXPECT_TRUE(place.signaled);
  EXPECT_TRUE(queue.AwaitsSignaled());
  queue.Add({}, false);
  EXPECT_TRUE(queue.AwaitsSignaled());
  queue.Complete(place.position, [](Resource) {});
  EXPECT_FALSE(queue.AwaitsSignaled());
}

}  // namespace
}  // namespace gannet
