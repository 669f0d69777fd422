#include "server/rpc/inbox.h"

#include <poll.h>

#include <thread>

#include "gtest/gtest.h"

namespace gannet {
namespace {

bool Readable(const Inbox& inbox) {
  pollfd fd{inbox.fd(), POLLIN, 0};
  return poll(&fd, 1, 0) == 1;
}

Notice NoticeOf(uint64_t name) { return {Notice::Type::kGone, name}; }

constexpr size_t kAll = Inbox::kArrivalsMax;

TEST(InboxTest, GivesWhatWasPutOnceAndInOrder) {
  auto inbox = Inbox::Create();
  ASSERT_TRUE(inbox.ok()) << inbox.status();
  EXPECT_TRUE((*inbox)->Take(kAll).empty());
  (*inbox)->Put(NoticeOf(1));
  (*inbox)->Put(NoticeOf(2));
  const Inbox::Contents contents = (*inbox)->Take(kAll);
  ASSERT_EQ(contents.notices.size(), 2u);
  EXPECT_EQ(contents.notices[0].name, 1u);
  EXPECT_EQ(contents.notices[1].name, 2u);
  EXPECT_FALSE(contents.close);
  EXPECT_TRUE((*inbox)->Take(kAll).empty());
  (*inbox)->PutClose();
  EXPECT_TRUE((*inbox)->Take(kAll).close);
}

TEST(InboxTest, IsReadableFromPutUntilSilenced) {
  auto inbox = Inbox::Create();
  ASSERT_TRUE(inbox.ok()) << inbox.status();
  EXPECT_FALSE(Readable(**inbox));
  (*inbox)->Put(NoticeOf(1));
  EXPECT_TRUE(Readable(**inbox));
  (*inbox)->Silence();
  EXPECT_FALSE(Readable(**inbox));
  EXPECT_EQ((*inbox)->Take(kAll).notices.size(), 1u) << "silencing loses nothing";
}

// Does as a worker: sleeps until readable, silences, takes. If a wake-up is lost, the test hangs.
TEST(InboxTest, NothingIsLostBetweenThreads) {
  constexpr uint32_t kNotices = 20'000;
  auto inbox = Inbox::Create();
  ASSERT_TRUE(inbox.ok()) << inbox.status();
  std::jthread writer([&] {
    for (uint32_t i = 1; i <= kNotices; ++i) (*inbox)->Put(NoticeOf(i));
  });
  uint32_t expected = 1;
  while (expected <= kNotices) {
    pollfd fd{(*inbox)->fd(), POLLIN, 0};
    if (poll(&fd, 1, /*timeout=*/20'000) != 1) break;
    (*inbox)->Silence();
    for (const Notice& notice : (*inbox)->Take(kAll).notices) {
      ASSERT_EQ(notice.name, expected);
      ++expected;
    }
  }
  writer.join();
  EXPECT_EQ(expected, kNotices + 1);
}

}  // namespace
}  // namespace gannet
