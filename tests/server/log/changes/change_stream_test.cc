// The stream of changes and its consumers.

#include "server/log/changes/change_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/log/changes/record.h"
#include "server/log/changes/update_lane_inline.h"

namespace gannet {
namespace {

using Need = ChangeStream::Need;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TestConsumer : public ChangeConsumer {
 public:
  bool Take(const Change& change, ChangePlace* place) override {
    if (refuses) return false;
    keys.push_back(std::string(change.key));
    ends.push_back(place->end);
    if (fills) place->room = this;
    return true;
  }
  void Fill(const Change& change, const ChangePlace& place) override {
    if (place.room == this) filled.emplace_back(change.key);
  }
  bool TakeUndo(const Change& deletion, std::span<const SessionRecord> answers,
                ChangePlace* place) override {
    return !refuses && ChangeConsumer::TakeUndo(deletion, answers, place);
  }
  void TakeSession(const SessionRecord& record) override {
    keys.push_back("session " + std::to_string(record.token));
  }
  uint64_t safe() const override { return safe_end; }
  bool Hears() const override { return hears; }

  bool refuses = false;
  bool fills = false;  // in two steps
  bool hears = true;
  uint64_t safe_end = 0;
  std::vector<std::string> keys;
  std::vector<uint64_t> ends;
  std::vector<std::string> filled;
};

Change PutOf(std::string_view key) { return {.version = 1, .key = key, .value = "value"}; }

TEST(ChangeStreamTest, GivesAnUndoWithItsAnswersOrNothingOfIt) {
  ChangeStream stream;
  TestConsumer first, other;
  stream.Add(&first, Need::kRequired);
  stream.Add(&other, Need::kHears);
  const SessionAnswer answer = {.sequence = 1, .words = {}, .opcode = 2, .status = 10, .zero = {}};
  const SessionRecord answers[] = {SessionRecord::Answers(7, std::span(&answer, 1), 9)};
  const Change deletion = {.kind = Change::Kind::kDelete, .version = 9, .key = "a"};
  first.refuses = true;
  EXPECT_EQ(stream.ReserveUndo(deletion, answers), std::nullopt);
  EXPECT_THAT(first.keys, IsEmpty());
  EXPECT_THAT(other.keys, IsEmpty());
  EXPECT_EQ(stream.end(), 0u);
  first.refuses = false;
  ASSERT_TRUE(stream.ReserveUndo(deletion, answers).has_value());
  EXPECT_THAT(first.keys, ElementsAre("session 7", "a"));
  EXPECT_THAT(other.keys, ElementsAre("session 7", "a"));
  EXPECT_EQ(stream.end(), RecordBytes(1, 0));
}

TEST(ChangeStreamTest, GivesEachChangeToAllInOneOrder) {
  ChangeStream stream;
  TestConsumer journal, backup, watcher;
  stream.BeginAt(1'000);
  stream.Add(&journal, Need::kRequired);
  stream.Add(&backup, Need::kRequired);
  stream.Add(&watcher, Need::kHears);
  EXPECT_EQ(stream.Append(PutOf("a")), 1'000 + RecordBytes(1, 5));
  EXPECT_EQ(stream.Append(PutOf("b")), 1'000 + 2 * RecordBytes(1, 5));
  EXPECT_EQ(stream.end(), 1'000 + 2 * RecordBytes(1, 5));
  for (const TestConsumer* consumer : {&journal, &backup, &watcher}) {
    EXPECT_THAT(consumer->keys, ElementsAre("a", "b"));
    EXPECT_THAT(consumer->ends,
                ElementsAre(1'000 + RecordBytes(1, 5), 1'000 + 2 * RecordBytes(1, 5)));
  }
}

TEST(ChangeStreamTest, PassesWhatNobodyHears) {
  ChangeStream stream;
  TestConsumer group, disk;
  stream.BeginAt(1'000);
  EXPECT_FALSE(stream.Hears());
  stream.Add(&group, Need::kRequired);
  stream.Add(&disk, Need::kHears);
  group.hears = false;
  EXPECT_TRUE(stream.Hears());
  disk.hears = false;
  EXPECT_FALSE(stream.Hears());
  stream.Pass(24);
  EXPECT_EQ(stream.end(), 1'024u);
  EXPECT_EQ(stream.Append(PutOf("a")), 1'024 + RecordBytes(1, 5));
}

// One that gives a lane memory and takes what it has, as a group does, or that takes none now.
class LaneConsumer : public TestConsumer {
 public:
  bool BeginUpdates(UpdateLane* lane) override {
    if (!takes_updates) return false;
    lane->UseMemory(memory);
    return true;
  }
  void EndUpdates(UpdateLane* lane) override {
    lane->Seal();
    for (const PlacedUpdate& update : lane->updates()) taken.emplace_back(UpdateKeyOf(update.body));
  }
  bool takes_updates = true;
  std::array<std::byte, 4096> memory;
  std::vector<std::string> taken;
};

UpdateLane::Update UpdateOf(std::string_view key, std::string_view value) {
  return {.version = 9, .flags = 3, .key = key, .value = value, .session_token = 7, .sequence = 8};
}

TEST(ChangeStreamTest, UpdatesOfALaneGoToAllConsumers) {
  ChangeStream stream;
  LaneConsumer group;
  TestConsumer disk;
  UpdateLane lane;
  stream.BeginAt(1'000);
  stream.Add(&group, Need::kRequired);
  stream.Add(&disk, Need::kHears);
  ASSERT_TRUE(stream.BeginUpdates(&lane));
  ASSERT_NE(lane.Append(UpdateOf("a", "one")), nullptr);
  ASSERT_NE(lane.Append(UpdateOf("bb", "three")), nullptr);
  stream.EndUpdates(&lane);
  EXPECT_EQ(stream.end(), 1'000 + RecordBytes(1, 3) + RecordBytes(2, 5));
  EXPECT_THAT(group.taken, ElementsAre("a", "bb"));
  EXPECT_THAT(disk.keys, ElementsAre("a", "bb"));
  EXPECT_THAT(disk.ends, ElementsAre(1'000 + RecordBytes(1, 3), stream.end()));
  const std::optional<uint64_t> end = stream.Append(PutOf("c"));
  EXPECT_EQ(end, stream.end()) << "its lock is free again";
}

TEST(ChangeStreamTest, UpdatesThatWereAppendedBeforeGetTheNextPlaces) {
  ChangeStream stream;
  TestConsumer disk;
  UpdateLane lane;
  std::array<std::byte, 4096> memory;
  stream.BeginAt(1'000);
  stream.Add(&disk, Need::kHears);
  lane.Begin(0);
  lane.UseMemory(memory);
  ASSERT_NE(lane.Append(UpdateOf("a", "one")), nullptr);
  ASSERT_NE(lane.Append(UpdateOf("bb", "three")), nullptr);
  ASSERT_TRUE(stream.TakesUpdates());
  ASSERT_TRUE(stream.Append(PutOf("c")).has_value()) << "it holds no lock yet";
  const uint64_t before = stream.end();
  lane.Seal();
  stream.RecordUpdates(&lane);
  EXPECT_EQ(stream.end(), before + RecordBytes(1, 3) + RecordBytes(2, 5));
  EXPECT_THAT(disk.keys, ElementsAre("c", "a", "bb"));
  EXPECT_THAT(disk.ends, ElementsAre(before, before + RecordBytes(1, 3), stream.end()));
}

TEST(ChangeStreamTest, ALaneThatTheFirstConsumerRefusesDoesNotBegin) {
  ChangeStream stream;
  LaneConsumer group;
  UpdateLane lane;
  stream.Add(&group, Need::kRequired);
  group.takes_updates = false;
  EXPECT_FALSE(stream.BeginUpdates(&lane));
  EXPECT_EQ(stream.Append(PutOf("a")), RecordBytes(1, 5)) << "its lock is free again";
}

TEST(ChangeStreamTest, AnEmptyLaneTakesNoPlace) {
  ChangeStream stream;
  TestConsumer disk;
  UpdateLane lane;
  stream.BeginAt(1'000);
  stream.Add(&disk, Need::kRequired);
  ASSERT_TRUE(stream.BeginUpdates(&lane));
  EXPECT_FALSE(lane.has_memory()) << "whoever begins it gives it some";
  stream.EndUpdates(&lane);
  EXPECT_EQ(stream.end(), 1'000u);
  EXPECT_THAT(disk.keys, IsEmpty());
}

TEST(ChangeStreamTest, GivesRecordsOfSessionsInTheSameOrderAndWithoutAPosition) {
  ChangeStream stream;
  TestConsumer journal, backup;
  stream.Add(&journal, Need::kRequired);
  stream.Add(&backup, Need::kRequired);
  EXPECT_TRUE(stream.Record(PutOf("a")));
  stream.RecordSession(SessionRecord::Ended(7));
  EXPECT_EQ(stream.end(), RecordBytes(1, 5));
  EXPECT_TRUE(stream.Record(PutOf("b")));
  EXPECT_THAT(journal.keys, ElementsAre("a", "session 7", "b"));
  EXPECT_THAT(backup.keys, ElementsAre("a", "session 7", "b"));
}

// A server's own journal is the first consumer, that of a member of a group the second one.
TEST(ChangeStreamTest, OneConsumerMayCopyAChangeLater) {
  for (const size_t late : {size_t{0}, size_t{1}}) {
    ChangeStream stream;
    std::array<TestConsumer, 2> consumers;
    consumers[late].fills = true;
    for (TestConsumer& consumer : consumers) stream.Add(&consumer, Need::kRequired);
    const auto a = stream.Reserve(PutOf("a"));
    const auto b = stream.Reserve(PutOf("b"));
    EXPECT_THAT(consumers[late].keys, ElementsAre("a", "b"));
    EXPECT_THAT(consumers[late].filled, IsEmpty());
    stream.Fill(PutOf("b"), *b);
    stream.Fill(PutOf("a"), *a);
    EXPECT_THAT(consumers[late].filled, ElementsAre("b", "a"));
    EXPECT_THAT(consumers[1 - late].filled, IsEmpty());
  }
}

TEST(ChangeStreamTest, NobodyHearsOfAChangeThatTheFirstRefuses) {
  ChangeStream stream;
  TestConsumer journal, backup;
  stream.Add(&journal, Need::kRequired);
  stream.Add(&backup, Need::kRequired);
  journal.refuses = true;
  EXPECT_EQ(stream.Append(PutOf("a")), std::nullopt);
  EXPECT_FALSE(stream.Record(PutOf("a")));
  EXPECT_THAT(backup.keys, IsEmpty());
  EXPECT_EQ(stream.end(), 0u) << "a position was used up";
  journal.refuses = false;
  EXPECT_TRUE(stream.Record(PutOf("b")));
  EXPECT_THAT(backup.keys, ElementsAre("b"));
  EXPECT_EQ(backup.ends, journal.ends);
}

TEST(ChangeStreamTest, IsSafeWhereAllThatAreRequiredAre) {
  ChangeStream stream;
  TestConsumer journal, backup, watcher;
  EXPECT_EQ(stream.safe(), UINT64_MAX) << "nobody is waited for";
  stream.Add(&journal, Need::kRequired);
  stream.Add(&watcher, Need::kHears);
  journal.safe_end = 80;
  EXPECT_EQ(stream.safe(), 80u) << "a watcher is not waited for";
  stream.Add(&backup, Need::kRequired);
  EXPECT_EQ(stream.safe(), 0u);
  backup.safe_end = 160;
  EXPECT_EQ(stream.safe(), 80u);
  journal.safe_end = 240;
  EXPECT_EQ(stream.safe(), 160u);
  stream.Remove(&backup);
  EXPECT_EQ(stream.safe(), 240u);
}

}  // namespace
}  // namespace gannet
