#include "server/log/stream/ring_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/align.h"
#include "server/log/stream/update_batch.h"
#include "server/log/stream/update_record.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/log/stream/some_records.h"
#include "tests/server/log/stream/two_rings.h"

namespace gannet {
namespace {

constexpr uint64_t kAll = UINT64_MAX;
constexpr auto kIgnore = [](const RingRecord&, uint64_t, uint64_t) {};

// What was appended and has not been taken.
struct Appended {
  OwnRecord record;
  uint64_t end;
};

// Returns how many updates there are.
size_t UseEach(const ProvenUpdates& updates, bool of_batch, RingReader::Use use) {
  uint64_t lsn = updates.lsn();
  size_t count = 0;
  std::string bodies;
  for (const std::byte* const update : updates) {
    ++count;
    bodies.append(reinterpret_cast<const char*>(update), UpdateBodyBytesOf(update));
    if (of_batch) continue;
    RingRecord record{.kind = RingRecordKind::kUpdate};
    DecodeUpdateBody(update, &record.change);
    const size_t bytes = kUpdateBodyAt + UpdateBodyBytesOf(update);
    use(record, lsn, lsn + bytes);
    lsn += bytes;
  }
  if (of_batch) {
    const RingRecord record = RingRecord::UpdateBatch(bodies);
    use(record, lsn, lsn + record.bytes());
    lsn += record.bytes();
  }
  EXPECT_EQ(lsn, updates.lsn_end());
  return count;
}

// A primary that appends, ships and completes at random; a device that is late, and leaves each
// shipment torn for a while; and a backup that is slow.
void RunAtRandom(uint64_t seed) {
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const auto below = [&random](uint64_t n) { return random() % n; };
  TwoRings rings(kShortRing + 8 * below(1'000), random(), 8 * below(1'000'000));
  std::deque<Appended> appended;
  std::deque<RingWriter::Shipment> shipped;
  uint64_t committed = 0;
  int wraps = 0;
  size_t at_once = 0;  // updates
  const auto take = [&](uint64_t limit) {
    const auto use = [&](const RingRecord& record, uint64_t, uint64_t end) {
      ASSERT_FALSE(appended.empty());
      EXPECT_TRUE(record == appended.front().record.record());
      EXPECT_EQ(end, appended.front().end);
      appended.pop_front();
    };
    const auto use_updates = [&](const ProvenUpdates& updates) {
      ASSERT_FALSE(appended.empty());
      const RingRecordKind kind = appended.front().record.record().kind;
      at_once = std::max(at_once, UseEach(updates, kind == RingRecordKind::kUpdateBatch, use));
    };
    using Updates = std::optional<RingReader::UseUpdates>;
    rings.reader.Take(limit, use, below(4) == 0 ? Updates() : Updates(use_updates));
    ASSERT_TRUE(rings.writer.OnConsumed(rings.link, rings.reader.consumed()));
  };
  for (int step = 0; step < 600; ++step) {
    for (uint64_t n = below(6); n > 0; --n) {
      const OwnRecord record = RandomRecord(&random);
      if (!rings.writer.HasRoomFor(record.record().bytes())) break;
      appended.push_back({record, rings.writer.Append(record.record(), committed)});
    }
    if (below(2) == 0) {
      const RingWriter::Shipment shipment = rings.writer.Ship(rings.link);
      if (shipment[0].bytes > 0) shipped.push_back(shipment);
      wraps += shipment[1].bytes > 0;
    }
    if (!shipped.empty() && below(2) == 0) {
      const size_t bytes = shipped.front()[0].bytes + shipped.front()[1].bytes;
      rings.Land(shipped.front(), below(bytes));
      rings.reader.Scan();
      rings.Land(shipped.front());
      rings.writer.OnCompleted(rings.link);
      shipped.pop_front();
      committed = rings.writer.completed_lsn(rings.link);
    }
    rings.reader.Scan();
    EXPECT_GE(rings.reader.end(), committed) << "what has completed is found";
    EXPECT_LE(rings.reader.committed(), committed);
    if (below(3) == 0) take(committed - std::min<uint64_t>(committed, below(3) * 500));
    if (testing::Test::HasFailure()) return;
  }
  const RingTail tail = rings.reader.Seal();
  EXPECT_GE(tail.end(), committed);
  tail.ForEach([&](const RingRecord& record, uint64_t, uint64_t end) {
    ASSERT_FALSE(appended.empty());
    EXPECT_TRUE(record == appended.front().record.record());
    EXPECT_EQ(end, appended.front().end);
    appended.pop_front();
  });
  EXPECT_GT(wraps, 0);
  EXPECT_GT(at_once, 1u);
}

TEST(RingReaderTest, FindsWhatWasAppendedInItsOrder) {
  const uint64_t seed = test_support::TestSeed();
  for (uint64_t i = 0; i < 6; ++i) RunAtRandom(seed + i);
}

TEST(RingReaderTest, StopsBeforeARecordOfWhichAnyByteIsMissing) {
  TwoRings rings(kShortRing);
  rings.writer.Append(PutOf("a", "1"), 0);
  rings.Ship();
  ASSERT_TRUE(rings.reader.Scan());
  const uint64_t whole = rings.reader.end();
  rings.writer.Append(PutOf("key", "value!!!!"), 0);
  const RingWriter::Shipment shipment = rings.writer.Ship(rings.link);
  // Zeros at the record's end are there before it comes, so it may be whole without them.
  const size_t padding = 4;
  ASSERT_EQ(shipment[0].bytes, AlignUp(sizeof(RecordHeader) + 12, 8));
  for (size_t missing = shipment[0].bytes; missing > padding; --missing) {
    rings.Land(shipment, missing);
    EXPECT_FALSE(rings.reader.Scan()) << missing;
    EXPECT_EQ(rings.reader.end(), whole);
  }
  rings.Land(shipment);
  EXPECT_TRUE(rings.reader.Scan());
}

TEST(RingReaderTest, StopsBeforeARecordOfWhichAnyWordCameLate) {
  for (size_t late = 0; late < 11; ++late) {
    TwoRings rings(kShortRing);
    rings.writer.Append(PutOf("key", "value!!!!"), 0);
    rings.Land(rings.writer.Ship(rings.link));
    const uint64_t word = std::exchange(rings.words_there[late], 0);
    if (word == 0) continue;  // it was zero before
    EXPECT_FALSE(rings.reader.Scan()) << late;
    rings.words_there[late] = word;
    EXPECT_TRUE(rings.reader.Scan()) << late;
  }
}

TEST(RingReaderTest, GarbageIsNoRecord) {
  const uint64_t seed = test_support::TestSeed();
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    TwoRings rings(kShortRing);
    for (size_t at = 0; at < 64; ++at) rings.words_there[at] = random();
    // A start that could be one.
    rings.words_there[1] = (8 * (random() % 70'000)) | (1 + random() % 5) << 32;
    EXPECT_FALSE(rings.reader.Scan());
    EXPECT_EQ(rings.reader.Seal().end(), 0u);
  }
}

TEST(RingReaderTest, RecordsOfAnOlderStreamAreNone) {
  TwoRings old(kShortRing, 5);
  for (int i = 0; i < 20; ++i) old.writer.Append(PutOf("key", "old"), 0);
  old.Ship();
  TwoRings rings(kShortRing, 6);
  rings.words_there = old.words_there;
  EXPECT_FALSE(rings.reader.Scan());
  rings.writer.Append(PutOf("key", "new"), 0);
  rings.Ship();
  EXPECT_TRUE(rings.reader.Scan());
  EXPECT_EQ(rings.reader.end(), PutOf("key", "new").bytes()) << "one record, and no old one";
}

TEST(RingReaderTest, LeavesWhatIsNotCommittedAndZeroesWhatItTakes) {
  TwoRings rings(kShortRing);
  const uint64_t first = rings.writer.Append(PutOf("a", "1"), 0);
  rings.writer.Append(PutOf("b", "2"), first);
  rings.Ship();
  rings.reader.Scan();
  EXPECT_EQ(rings.reader.committed(), first);
  std::vector<std::string> taken;
  const auto note = [&taken](const RingRecord& record, uint64_t, uint64_t) {
    taken.emplace_back(record.change.key);
  };
  rings.reader.Take(first - 8, note);
  EXPECT_TRUE(taken.empty());
  rings.reader.Take(first, note);
  EXPECT_EQ(taken, std::vector<std::string>{"a"});
  EXPECT_EQ(rings.reader.consumed(), first);
  for (size_t at = 0; at < first / 8; ++at) EXPECT_EQ(rings.words_there[at], 0u);
  EXPECT_NE(rings.words_there[first / 8 + 1], 0u);
}

// A primary that is not honest, or a device, may change the ring at any time.
TEST(RingReaderTest, TakesWhatItFoundThoughTheRingHasChangedSince) {
  TwoRings rings(kShortRing);
  const OwnRecord records[] = {OwnRecord(PutOf("a", "1")), OwnRecord(DeletionOf("b")),
                               OwnRecord(UpdateOf("d", "3")), OwnRecord(LongPutOf("c", 3)),
                               OwnRecord(AnswersOf(4, 0))};
  for (const OwnRecord& record : records) rings.writer.Append(record.record(), 0);
  rings.Ship();
  rings.reader.Scan();
  std::ranges::fill(rings.words_there, 0xeeeeeeeeeeeeeeee);
  size_t taken = 0;
  rings.reader.Take(kAll, [&](const RingRecord& record, uint64_t, uint64_t) {
    EXPECT_TRUE(record == records[taken++].record());
  });
  EXPECT_EQ(taken, std::size(records));
  EXPECT_EQ(rings.reader.taken(), rings.writer.end().lsn);
}

TEST(RingReaderTest, KeepsItsEndOnceItIsSealed) {
  TwoRings rings(kShortRing);
  const uint64_t end = rings.writer.Append(PutOf("a", "1"), 0);
  rings.Ship();
  RingTail tail = rings.reader.Seal();
  EXPECT_EQ(tail.end(), end);
  // A late copy.
  rings.writer.Append(PutOf("b", "2"), end);
  rings.Ship();
  std::ranges::fill(rings.there().first(end), std::byte{0xee});
  EXPECT_FALSE(rings.reader.Scan());
  EXPECT_EQ(rings.reader.end(), end);
  rings.reader.Take(kAll, kIgnore);
  EXPECT_EQ(rings.reader.taken(), 0u);
  EXPECT_EQ(rings.reader.Seal().end(), rings.reader.Seal().begin());
  std::string key;
  tail.ForEach([&](const RingRecord& record, uint64_t, uint64_t) { key = record.change.key; });
  EXPECT_EQ(key, "a");
}

// The device is another thread. It stores words in order, and tells nobody how far it is.
TEST(RingReaderTest, ReadsWhileADeviceWrites) {
  constexpr int kRecords = 2'000;
  TwoRings rings(2 << 20);
  for (int i = 0; i < kRecords; ++i) {
    const std::string value(100 + i % 200, 'v');
    rings.writer.Append(i % 2 == 0 ? PutOf("key", value) : UpdateOf("key", value), 0);
  }
  const RingWriter::Shipment shipment = rings.writer.Ship(rings.link);
  std::thread device(
      [&] { StoreWords(rings.there().data(), rings.here().data(), shipment[0].bytes); });
  int taken = 0;
  while (taken < kRecords) {
    rings.reader.Scan();
    rings.reader.Take(kAll, [&](const RingRecord&, uint64_t, uint64_t) { ++taken; });
  }
  device.join();
  EXPECT_EQ(taken, kRecords);
  EXPECT_EQ(rings.reader.taken(), rings.writer.end().lsn);
}

}  // namespace
}  // namespace gannet
