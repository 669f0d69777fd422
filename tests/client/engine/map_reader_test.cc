#include "client/engine/map_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/protocol/partition_map.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;

constexpr uint32_t kServer = 3;

std::string MapOf(std::vector<PartitionMap::Group> groups, uint64_t revision = 0) {
  return EncodePartitionMap({.revision = revision,
                             .groups = std::move(groups),
                             .partitions = std::vector<uint16_t>(kPartitions)});
}

class MapReaderTest : public ::testing::Test {
 protected:
  MapReaderTest() { reader_.OnConnected(0); }
  bool Due(int64_t now_ns) const { return reader_.due_ns() <= now_ns; }
  // Answers with a piece of `map` of at most `most` bytes, that begins at `from`.
  bool Answer(std::string_view map, uint64_t from, size_t most, int64_t now_ns = 0) {
    ReplyView reply{};
    reply.header.opcode = static_cast<uint8_t>(Opcode::kMap);
    reply.value = map.substr(from, most);
    const uint64_t next = from + reply.value.size();
    reply.header.list.next = next < map.size() ? next : 0;
    return reader_.OnReply(kServer, reply, now_ns);
  }
  bool Refuse(ReplyStatus status) {
    ReplyView reply{};
    reply.header.status = static_cast<uint8_t>(status);
    return reader_.OnReply(kServer, reply, 0);
  }
  // Lets time pass up to `end`. Returns at which milliseconds it asks.
  std::vector<int64_t> AskedMs(int64_t step, int64_t end) {
    std::vector<int64_t> asked_ms;
    for (int64_t& ms = now_ms_; ms < end; ms += step) {
      if (!Due(ms * kNsPerMs)) continue;
      asked_ms.push_back(ms);
      const uint64_t from = reader_.Ask(kServer, ms * kNsPerMs);
      EXPECT_TRUE(Answer(map_, from, map_.size(), ms * kNsPerMs));
      EXPECT_TRUE(reader_.Take().has_value());
    }
    return asked_ms;
  }

  const std::string map_ = MapOf({{"g1", {"h:1", "h:2"}}});
  MapReader reader_;
  int64_t now_ms_ = 0;
};

// Pieces of two servers may be of two maps.
TEST_F(MapReaderTest, AllPiecesAreOfOneServer) {
  EXPECT_EQ(reader_.teller(), kInvalidOp);
  ASSERT_EQ(reader_.Ask(kServer, 0), 0u);
  EXPECT_FALSE(Answer(map_, 0, 100));
  EXPECT_EQ(reader_.teller(), kServer);
  EXPECT_EQ(reader_.Ask(kServer + 1, 0), 0u) << "from its beginning";
  reader_.OnLost(kServer + 1, 0);
  ASSERT_EQ(reader_.Ask(kServer, 0), 0u);
  EXPECT_FALSE(Answer(map_, 0, 100));
  reader_.OnLost(kServer, 0);
  EXPECT_EQ(reader_.teller(), kInvalidOp);
}

TEST_F(MapReaderTest, TakesAMapInPieces) {
  int pieces = 0;
  for (bool whole = false; !whole; ++pieces) {
    ASSERT_TRUE(Due(0));
    whole = Answer(map_, reader_.Ask(kServer, 0), 1000);
  }
  EXPECT_EQ(pieces, 3);
  EXPECT_FALSE(Due(0));
  EXPECT_THAT(reader_.Take()->groups[0].addresses, ElementsAre("h:1", "h:2"));
  EXPECT_EQ(reader_.Take(), std::nullopt) << "once";
  EXPECT_TRUE(reader_.answered());
}

TEST_F(MapReaderTest, TakesNoMapThatChangedBetweenTwoPieces) {
  const std::string other = MapOf({{"g1", {"h:1", "h:3"}}});
  EXPECT_FALSE(Answer(map_, reader_.Ask(kServer, 0), 1500));
  EXPECT_TRUE(Answer(other, reader_.Ask(kServer, 0), 1500));
  EXPECT_EQ(reader_.Take(), std::nullopt);
  EXPECT_FALSE(reader_.answered());
}

TEST_F(MapReaderTest, AsksAtOnceAndThenLessAndLessOften) {
  EXPECT_THAT(AskedMs(1000, 120'000),
              ElementsAre(0, 1000, 3000, 7000, 15'000, 31'000, 63'000, 95'000));
}

TEST_F(MapReaderTest, AsksSoonAndThenLessSoonWhileANewerMapIsWanted) {
  EXPECT_THAT(AskedMs(1, 200), ElementsAre(0));
  reader_.WantSoon(true, 200 * kNsPerMs);
  EXPECT_THAT(AskedMs(1, 300), ElementsAre(200, 205, 215, 235, 255, 275, 295));
  AskedMs(1, 1'200);
  EXPECT_THAT(AskedMs(1, 1'600), ElementsAre(1'200, 1'220, 1'260, 1'340, 1'440, 1'540));
}

TEST_F(MapReaderTest, ReadsNoMoreThanOnePieceOfTheMapThatIsKnownWhileItWantsANewerOne) {
  const std::string known = MapOf({{"g1", {"h:1"}}}, 7);
  const std::string newer = MapOf({{"g1", {"h:1"}}}, 8);
  EXPECT_TRUE(Answer(known, reader_.Ask(kServer, 0), known.size()));
  ASSERT_TRUE(reader_.Take().has_value());
  EXPECT_FALSE(reader_.unchanged());
  reader_.OnNewer();
  reader_.SetKnown(7);
  reader_.WantSoon(true, 200 * kNsPerMs);
  ASSERT_TRUE(Due(200 * kNsPerMs));
  EXPECT_TRUE(Answer(known, reader_.Ask(kServer, 200 * kNsPerMs), 1000, 200 * kNsPerMs));
  EXPECT_TRUE(reader_.unchanged());
  EXPECT_EQ(reader_.Take(), std::nullopt);
  ASSERT_TRUE(Due(210 * kNsPerMs));
  EXPECT_FALSE(Answer(newer, reader_.Ask(kServer, 210 * kNsPerMs), 1000, 210 * kNsPerMs));
  EXPECT_FALSE(reader_.unchanged());
  EXPECT_TRUE(Answer(newer, reader_.Ask(kServer, 210 * kNsPerMs), newer.size(), 210 * kNsPerMs));
  EXPECT_EQ(reader_.Take()->revision, 8u);
}

// Members may have come or gone.
TEST_F(MapReaderTest, ReadsTheWholeMapNowAndThen) {
  const std::string known = MapOf({{"g1", {"h:1"}}}, 7);
  EXPECT_TRUE(Answer(known, reader_.Ask(kServer, 0), known.size()));
  ASSERT_TRUE(reader_.Take().has_value());
  reader_.SetKnown(7);
  reader_.WantSoon(true, MapReader::kPeriodNs);
  EXPECT_FALSE(Answer(known, reader_.Ask(kServer, MapReader::kPeriodNs), 1000));
  EXPECT_FALSE(reader_.unchanged());
}

// An operation that is sent again and again wants a newer map now and then.
TEST_F(MapReaderTest, PausesGoOnToGrowIfItIsWantedAgainAMomentLater) {
  EXPECT_THAT(AskedMs(1, 200), ElementsAre(0));
  reader_.WantSoon(true, 200 * kNsPerMs);
  EXPECT_THAT(AskedMs(1, 250), ElementsAre(200, 205, 215, 235));
  reader_.WantSoon(false, 235 * kNsPerMs);
  reader_.WantSoon(true, 236 * kNsPerMs);
  EXPECT_THAT(AskedMs(1, 300), ElementsAre(255, 275, 295));
  reader_.OnNewer();
  reader_.WantSoon(false, 300 * kNsPerMs);
  reader_.WantSoon(true, 300 * kNsPerMs);
  EXPECT_THAT(AskedMs(1, 310), ElementsAre(300, 305)) << "the map was newer";
}

TEST_F(MapReaderTest, AsksNobodyBeforeAServerOfAGroupIsConnectedNorWhoKnowsNoMaps) {
  EXPECT_EQ(MapReader().due_ns(), MapReader::kNever);
  reader_.Ask(kServer, 0);
  EXPECT_TRUE(Refuse(ReplyStatus::kUnimplemented));
  EXPECT_EQ(reader_.due_ns(), MapReader::kNever);
  EXPECT_TRUE(reader_.answered());
}

TEST_F(MapReaderTest, AServerWithoutAMapIsAskedAgain) {
  reader_.Ask(kServer, 0);
  EXPECT_TRUE(Refuse(ReplyStatus::kNotFound));
  EXPECT_EQ(reader_.Take(), std::nullopt);
  EXPECT_TRUE(reader_.answered());
  EXPECT_TRUE(Due(MapReader::kPeriodNs));
}

// What was asked over the last one is not answered any more.
TEST_F(MapReaderTest, BeginsAnewIfTheConnectionIsLost) {
  EXPECT_FALSE(Answer(map_, reader_.Ask(kServer, 0), 100));
  EXPECT_EQ(reader_.Ask(kServer, 0), 100u);
  reader_.OnLost(kServer + 1, 5);
  EXPECT_FALSE(Due(5)) << "another server was asked";
  reader_.OnLost(kServer, 5);
  ASSERT_TRUE(Due(5));
  EXPECT_EQ(reader_.Ask(kServer, 5), 0u);
  EXPECT_TRUE(Answer(map_, 0, map_.size()));
  EXPECT_THAT(reader_.Take()->groups[0].addresses, ElementsAre("h:1", "h:2"));
}

TEST_F(MapReaderTest, AServerThatDoesNotAnswerIsGivenUp) {
  reader_.Ask(kServer, 0);
  EXPECT_FALSE(Due(MapReader::kPatienceNs - 1));
  ASSERT_TRUE(Due(MapReader::kPatienceNs));
  EXPECT_EQ(reader_.silent_server(), kServer);
  EXPECT_EQ(reader_.Ask(kServer + 1, MapReader::kPatienceNs), 0u);
  EXPECT_FALSE(Answer(map_, 0, map_.size())) << "it comes too late";
  EXPECT_EQ(reader_.Take(), std::nullopt);
}

}  // namespace
}  // namespace gannet
