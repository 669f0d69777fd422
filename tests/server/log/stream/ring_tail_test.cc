#include "server/log/stream/ring_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/log/stream/some_records.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kBytes = sizeof(RecordHeader) + 8;  // of each record here

// A tail of puts of these keys, in a stream of its own.
RingTail TailOf(uint64_t stream_id, uint64_t lsn, const std::vector<std::string>& keys) {
  RingTail tail(lsn);
  for (const std::string& key : keys) {
    const RingRecord record = PutOf(key, "");
    std::vector<std::byte> bytes(record.bytes());
    const RingRecordPlace place = {.stream_id = stream_id, .lsn = tail.end()};
    EncodeRingRecord(record, place, 0, bytes);
    tail.Add(bytes, place);
  }
  return tail;
}

std::vector<std::string> KeysOf(const RingTail& tail) {
  std::vector<std::string> keys;
  uint64_t at = tail.begin();
  tail.ForEach([&](const RingRecord& record, uint64_t lsn, uint64_t end) {
    EXPECT_EQ(lsn, at) << "records follow each other";
    at = end;
    keys.emplace_back(record.change.key);
  });
  EXPECT_EQ(at, tail.end());
  return keys;
}

TEST(RingTailTest, GivesAwayWhatEndsAtTheLimitOrBefore) {
  RingTail tail = TailOf(1, 800, {"a", "b", "c"});
  std::vector<std::string> taken;
  const auto note = [&taken](const RingRecord& record, uint64_t, uint64_t) {
    taken.emplace_back(record.change.key);
  };
  tail.Take(800 + 2 * kBytes - 8, note);
  EXPECT_THAT(taken, ElementsAre("a"));
  tail.Take(800 + 2 * kBytes, note);
  EXPECT_THAT(taken, ElementsAre("a", "b"));
  EXPECT_EQ(tail.begin(), 800 + 2 * kBytes);
  EXPECT_THAT(KeysOf(tail), ElementsAre("c"));
  tail.Take(UINT64_MAX, note);
  EXPECT_THAT(KeysOf(tail), IsEmpty());
}

TEST(RingTailTest, LaysANewerStreamOverAnOlderOne) {
  RingTail tail = TailOf(1, 0, {"a", "b", "c", "d"});
  EXPECT_TRUE(tail.LayOver(TailOf(2, kBytes, {"B", "C"})));
  EXPECT_THAT(KeysOf(tail), ElementsAre("a", "B", "C", "d"));
  EXPECT_TRUE(tail.LayOver(TailOf(3, 4 * kBytes, {"E"}))) << "it goes on where the other ends";
  EXPECT_THAT(KeysOf(tail), ElementsAre("a", "B", "C", "d", "E"));
  EXPECT_TRUE(tail.LayOver(TailOf(4, 2 * kBytes, {"x", "y", "z", "w"})));
  EXPECT_THAT(KeysOf(tail), ElementsAre("a", "B", "x", "y", "z", "w"));
}

TEST(RingTailTest, ANewerStreamMayBeginBeforeOrHaveNothing) {
  RingTail tail = TailOf(1, kBytes, {"b"});
  EXPECT_TRUE(tail.LayOver(TailOf(2, kBytes, {})));
  EXPECT_THAT(KeysOf(tail), ElementsAre("b"));
  EXPECT_TRUE(tail.LayOver(TailOf(2, 0, {"A"})));
  EXPECT_THAT(KeysOf(tail), ElementsAre("A", "b"));
}

TEST(RingTailTest, NoticesStreamsThatDisagree) {
  RingTail tail = TailOf(1, 0, {"a", "b"});
  EXPECT_FALSE(tail.LayOver(TailOf(2, 0, {"a longer key"})));
  EXPECT_FALSE(tail.LayOver(TailOf(2, 8, {"c"})));
  EXPECT_THAT(KeysOf(tail), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace gannet
