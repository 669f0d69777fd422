#include "server/group/replica/backup_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/group/replica/opening.h"
#include "server/log/stream/ring_writer.h"
#include "tests/server/group/replica/group_times.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kRingBytes = 2 * kRingRecordBytesMax;

RingRecord Record(const std::string& key) {
  return RingRecord::Of({.version = 1, .key = key, .value = "value"});
}
const uint64_t kBytes = Record("a").bytes();

// A primary's ring, and a ring of a backup that has so many of its records.
struct Stream {
  Stream(uint64_t id, uint64_t first_lsn)
      : begin({.stream_id = id, .lsn = first_lsn, .position = 0}),
        from(kRingBytes / 8),
        to(kRingBytes / 8),
        writer(Bytes(&from), id, first_lsn) {}

  static std::span<std::byte> Bytes(std::vector<uint64_t>* words) {
    return std::as_writable_bytes(std::span(*words));
  }
  void Append(const std::string& key) { writer.Append(Record(key), 0); }
  // The first `bytes` have landed.
  void Land(uint64_t bytes) { std::ranges::copy(Bytes(&from).first(bytes), Bytes(&to).begin()); }
  std::span<std::byte> ring() { return Bytes(&to); }

  RingReader::Begin begin;
  std::vector<uint64_t> from;
  std::vector<uint64_t> to;
  RingWriter writer;
};

class BackupLogTest : public testing::Test {
 protected:
  auto Apply() {
    return [this](const RingRecord& record, uint64_t, uint64_t) {
      applied_.emplace_back(record.change.key);
    };
  }
  // Follows a first stream with these records, of which `committed` are committed, and seals it.
  void FollowFirst(const std::vector<std::string>& keys, uint64_t committed) {
    for (const std::string& key : keys) first_.Append(key);
    first_.Land(keys.size() * kBytes);
    ASSERT_TRUE(log_.Follow(first_.ring(), first_.begin, 0, Apply()));
    log_.OnCommitted(committed * kBytes);
    log_.Apply(Apply());
    ASSERT_TRUE(log_.Seal());
  }
  std::vector<std::string> Tail() {
    std::vector<std::string> keys;
    log_.TakeTail().ForEach([&](const RingRecord& record, uint64_t, uint64_t) {
      keys.emplace_back(record.change.key);
    });
    return keys;
  }

  Stream first_{5, 0};
  BackupLog log_{0};
  std::vector<std::string> applied_;
};

TEST_F(BackupLogTest, AppliesWhatIsCommittedAndTakesTheRestOver) {
  FollowFirst({"a", "b", "c"}, 2);
  EXPECT_THAT(applied_, ElementsAre("a", "b"));
  EXPECT_EQ(log_.applied(), 2 * kBytes);
  EXPECT_THAT(Tail(), ElementsAre("c"));
  EXPECT_THAT(Tail(), IsEmpty());
}

// If it is the last one that has them, they may have been acknowledged.
TEST_F(BackupLogTest, SaysWhatHasComeThoughItIsNotApplied) {
  for (const char* key : {"a", "b", "c"}) first_.Append(key);
  ASSERT_TRUE(log_.Follow(first_.ring(), first_.begin, 0, Apply()));
  first_.Land(2 * kBytes);
  EXPECT_EQ(log_.Received(), 2 * kBytes);
  first_.Land(3 * kBytes);
  ASSERT_TRUE(log_.Seal());
  EXPECT_EQ(log_.Received(), 3 * kBytes);
  EXPECT_EQ(log_.applied(), 0u);
}

// The next primary may have committed other records there, without this member.
TEST_F(BackupLogTest, ARestIsNothingThatTheNextStreamHasBrought) {
  FollowFirst({"a", "b", "c", "d"}, 1);
  Stream next(6, kBytes);
  next.Append("b");
  next.Land(kBytes);
  ASSERT_TRUE(log_.Follow(next.ring(), next.begin, 4 * kBytes, Apply()));
  EXPECT_EQ(log_.Received(), 2 * kBytes);
  ASSERT_TRUE(log_.Seal());
  EXPECT_EQ(log_.Received(), 2 * kBytes);
}

// The primary counts on all that a former link brought, and WRITEs again what was not taken.
TEST_F(BackupLogTest, ALinkThatIsMadeAnewGoesOnWhereTheFormerOneWasTaken) {
  FollowFirst({"a", "b", "c"}, 1);
  ASSERT_EQ(log_.sealed_at(),
            (RingReader::Begin{.stream_id = 5, .lsn = kBytes, .position = kBytes}));
  for (const char* key : {"d", "e"}) first_.Append(key);
  std::vector<uint64_t> ring(kRingBytes / 8);
  ASSERT_TRUE(log_.Follow(Stream::Bytes(&ring), *log_.sealed_at(), 5 * kBytes, Apply()));
  EXPECT_EQ(log_.Received(), 3 * kBytes) << "it has them, though not in this ring";
  const auto land = [&](uint64_t from, uint64_t to) {
    std::ranges::copy(Stream::Bytes(&first_.from).subspan(from, to - from),
                      Stream::Bytes(&ring).begin() + static_cast<ptrdiff_t>(from));
  };
  land(kBytes, 2 * kBytes);
  log_.OnCommitted(2 * kBytes);
  log_.Apply(Apply());
  EXPECT_THAT(applied_, ElementsAre("a", "b"));
  ASSERT_TRUE(log_.Seal());
  EXPECT_THAT(Tail(), ElementsAre("c")) << "of the former ring";
}

TEST_F(BackupLogTest, ALinkThatIsMadeAnewBringsTheRest) {
  FollowFirst({"a", "b", "c"}, 1);
  for (const char* key : {"d", "e"}) first_.Append(key);
  std::vector<uint64_t> ring(kRingBytes / 8);
  ASSERT_TRUE(log_.Follow(Stream::Bytes(&ring), *log_.sealed_at(), 5 * kBytes, Apply()));
  std::ranges::copy(Stream::Bytes(&first_.from).subspan(kBytes, 4 * kBytes),
                    Stream::Bytes(&ring).begin() + static_cast<ptrdiff_t>(kBytes));
  log_.OnCommitted(4 * kBytes);
  log_.Apply(Apply());
  EXPECT_THAT(applied_, ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(log_.consumed(), 4 * kBytes);
  ASSERT_TRUE(log_.Seal());
  EXPECT_EQ(log_.sealed_at()->lsn, 4 * kBytes);
  EXPECT_THAT(Tail(), ElementsAre("e"));
}

TEST_F(BackupLogTest, ATailThatIsEmptyBeginsBehindWhatIsApplied) {
  FollowFirst({"a"}, 1);
  EXPECT_EQ(log_.TakeTail().begin(), kBytes);
}

TEST_F(BackupLogTest, ASurvivorAppliesItsOwnTailUpToWhatTheNextPrimaryHasApplied) {
  FollowFirst({"a", "b", "c"}, 1);
  Stream next(6, 2 * kBytes);
  ASSERT_TRUE(log_.Follow(next.ring(), next.begin, 3 * kBytes, Apply()));
  EXPECT_THAT(applied_, ElementsAre("a", "b"));
}

TEST_F(BackupLogTest, ASurvivorSkipsWhatItHasApplied) {
  FollowFirst({"a", "b", "c"}, 2);
  Stream next(6, kBytes);
  for (const char* key : {"b", "c", "d"}) next.Append(key);
  ASSERT_TRUE(log_.Follow(next.ring(), next.begin, 3 * kBytes, Apply()));
  next.Land(3 * kBytes);
  log_.OnCommitted(4 * kBytes);
  log_.Apply(Apply());
  EXPECT_THAT(applied_, ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(log_.consumed(), 3 * kBytes);
}

TEST_F(BackupLogTest, CannotFollowAStreamThatBeginsBehindItsEnd) {
  FollowFirst({"a"}, 0);
  Stream next(6, 2 * kBytes);
  EXPECT_FALSE(log_.Follow(next.ring(), next.begin, 2 * kBytes, Apply()));
}

TEST_F(BackupLogTest, KeepsTheRestUntilTheNextStreamHasReachedTheEndOfItsPrimarysTail) {
  FollowFirst({"a", "b", "c", "d"}, 1);
  Stream next(6, kBytes);
  next.Append("b");
  next.Append("c");
  ASSERT_TRUE(log_.Follow(next.ring(), next.begin, 3 * kBytes, Apply()));
  next.Land(kBytes);  // the new primary dies before it has sent its tail
  log_.Apply(Apply());
  ASSERT_TRUE(log_.Seal());
  EXPECT_THAT(Tail(), ElementsAre("b", "c", "d"));
}

TEST_F(BackupLogTest, LaysWhatTheNextStreamHasBroughtOverTheRest) {
  FollowFirst({"a", "b"}, 1);
  Stream next(6, kBytes);  // of a primary whose tail is longer than the rest here
  for (const char* key : {"b", "c", "d"}) next.Append(key);
  ASSERT_TRUE(log_.Follow(next.ring(), next.begin, 4 * kBytes, Apply()));
  next.Land(2 * kBytes);
  ASSERT_TRUE(log_.Seal());
  EXPECT_THAT(Tail(), ElementsAre("b", "c")) << "c may be committed: all may have it";
}

TEST_F(BackupLogTest, DropsTheRestOnceTheNextStreamHasReachedThatEnd) {
  FollowFirst({"a", "b", "c", "d"}, 1);
  Stream next(6, kBytes);
  next.Append("b");
  next.Append("c");
  ASSERT_TRUE(log_.Follow(next.ring(), next.begin, 3 * kBytes, Apply()));
  next.Land(2 * kBytes);
  ASSERT_TRUE(log_.Seal());
  EXPECT_THAT(Tail(), ElementsAre("b", "c")) << "d was never committed, and may come elsewhere";
}

TEST_F(BackupLogTest, AnOpeningSendsTheTailAgainAndWaitsForItAndForTheLease) {
  FollowFirst({"a", "b", "c"}, 1);
  Opening opening(log_.TakeTail());
  EXPECT_EQ(opening.first_lsn(), kBytes);
  EXPECT_EQ(opening.tail_end(), 3 * kBytes);
  Stream next(6, opening.first_lsn());
  opening.Send(&next.writer, opening.first_lsn());
  EXPECT_EQ(next.writer.end().lsn, 3 * kBytes);
  PrimaryLease lease(kTimes);
  EXPECT_FALSE(opening.IsOver(2 * kBytes, lease, Boot(0)));
  lease.Count(1, Boot(0));
  EXPECT_FALSE(opening.IsOver(3 * kBytes, lease, Boot(0))) << "somebody is not connected";
  lease.OnAnswer(1, lease.OnSend(Boot(0)), Boot(0));
  EXPECT_TRUE(opening.IsOver(3 * kBytes, lease, Boot(0)));
  EXPECT_TRUE(opening.IsOver(3 * kBytes, lease, Boot(kTimes.lease_ns))) << "for good";
}

}  // namespace
}  // namespace gannet
