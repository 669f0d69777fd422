#include "server/log/stream/ring_record.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "server/log/stream/update_batch.h"
#include "server/log/stream/update_record.h"
#include "tests/server/log/stream/seal_update.h"
#include "tests/server/log/stream/some_records.h"
#include "tests/support/hex.h"

namespace gannet {
namespace {

constexpr RingRecordPlace kPlace = {.stream_id = 0x1122334455667788, .lsn = 0x4000};
constexpr uint64_t kCommitted = 0x3f80;

std::vector<std::byte> Encoded(const RingRecord& record) {
  std::vector<std::byte> bytes(record.bytes());
  EncodeRingRecord(record, kPlace, kCommitted, bytes);
  return bytes;
}

// Two updates, of which the second needs no padding.
const std::string& TwoBodies() {
  static const std::string& bodies = *[] {
    auto* const two = new std::string;
    AddBody(UpdateOf("key", "valu"), two);
    AddBody(UpdateOf("key", "value"), two);
    return two;
  }();
  return bodies;
}

std::vector<RingRecord> OneOfEach() {
  return {PutOf("key", "value"),
          UpdateOf("key", "value"),
          RingRecord::UpdateBatch(TwoBodies()),
          DeletionOf("key"),
          LongPutOf("key", 0x0102030405060708),
          RingRecord::Part(9, kPartBytes, "part of a value"),
          RingRecord::Wrap(),
          SessionBegunOf(0x1112131415161718),
          SessionEndedOf(0x1112131415161718),
          AnswersOf(0x1112131415161718, 9)};
}

TEST(RingRecordTest, ComesBackAsItWasEncoded) {
  const std::string longest(kPartBytes, 'v');
  std::vector<RingRecord> all = OneOfEach();
  all.push_back(PutOf("key", longest));
  all.push_back(RingRecord::Part(9, 0, longest));
  all.push_back(PutOf("key", ""));
  all.push_back(UpdateOf("key", ""));
  all.push_back(UpdateOf("key", longest));
  all.push_back(UpdateOf("sixteen bytes ..", "eight .."));
  const std::vector<SessionAnswer> most(SessionRecord::kAnswersMax, kTwoAnswers[0]);
  all.push_back(RingRecord::OfSession(SessionRecord::Answers(1, most)));
  all.push_back(RingRecord::OfSession({.token = 1, .id = 3, .credits = 65535, .answers = {}}));
  for (const RingRecord& record : all) {
    const std::vector<std::byte> bytes = Encoded(record);
    RingRecordStart start;
    std::memcpy(&start, bytes.data(), sizeof(start));
    EXPECT_EQ(LengthOfRingRecord(start), bytes.size());
    const auto view = DecodeRingRecord(bytes, kPlace);
    ASSERT_TRUE(view.has_value()) << static_cast<int>(record.kind);
    EXPECT_TRUE(view->record == record) << static_cast<int>(record.kind);
    EXPECT_EQ(view->committed, record.kind == RingRecordKind::kWrap ? 0 : kCommitted);
  }
}

// Changes are as record_test has them.
TEST(RingRecordTest, HasTheseBytes) {
  EXPECT_EQ(test_support::Hex(Encoded(LongPutOf("key", 0x0102030405060708))).substr(16),
            "5800000004000300"
            "0700000000000000"
            "0000000000000000"
            "0000000001000400"
            "0000000000000000"
            "0000000000000000"
            "0000000000000000"
            "803f000000000000"
            "6b65790807060504"
            "0302010000000000");
  EXPECT_EQ(test_support::Hex(Encoded(RingRecord::Part(9, kPartBytes, "part"))).substr(16),
            "3000000003000000"
            "0900000000000000"
            "803f000000000000"
            "0000040004000000"
            "7061727400000000");
  EXPECT_EQ(test_support::Hex(Encoded(RingRecord::Wrap())).substr(16), "1000000005000000");
}

TEST(RingRecordTest, OfSessionsHasTheseBytes) {
  EXPECT_EQ(test_support::Hex(Encoded(SessionBegunOf(0x1112131415161718))).substr(16),
            "3000000006000000"
            "1817161514131211"
            "803f000000000000"
            "0300000004000000"
            "2000010000000000");
  EXPECT_EQ(test_support::Hex(Encoded(SessionEndedOf(0x1112131415161718))).substr(16),
            "2000000007000000"
            "1817161514131211"
            "803f000000000000");
  EXPECT_EQ(test_support::Hex(Encoded(AnswersOf(0x1112131415161718, 9))).substr(16),
            "8000000008000000"
            "1817161514131211"
            "803f000000000000"
            "0900000000000000"
            "0200000000000000"
            "0500000000000000"
            "0600000000000000"
            "0000000000000000"
            "0700000000000000"
            "0c0e000000000000"
            "0800000000000000"
            "0000000000000000"
            "0000000000000000"
            "0000000000000000"
            "0301000000000000");
}

TEST(RingRecordTest, IsRefusedIfAnyBitIsWrong) {
  for (const RingRecord& record : OneOfEach()) {
    const std::vector<std::byte> good = Encoded(record);
    for (size_t bit = 0; bit < good.size() * 8; ++bit) {
      std::vector<std::byte> bad = good;
      bad[bit / 8] ^= std::byte{1} << bit % 8;
      EXPECT_FALSE(DecodeRingRecord(bad, kPlace).has_value()) << "bit " << bit;
    }
  }
}

TEST(RingRecordTest, IsRefusedElsewhere) {
  for (const RingRecord& record : OneOfEach()) {
    const std::vector<std::byte> bytes = Encoded(record);
    EXPECT_FALSE(DecodeRingRecord(bytes, {kPlace.stream_id + 1, kPlace.lsn}).has_value());
    EXPECT_FALSE(DecodeRingRecord(bytes, {kPlace.stream_id, kPlace.lsn + 8}).has_value());
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(DecodeRingRecord(std::span(bytes).first(size), kPlace).has_value()) << size;
    }
  }
}

// The value and the key are as in an item.
TEST(RingRecordTest, OfAnUpdateHasTheseBytes) {
  const std::vector<std::byte> bytes = Encoded(UpdateOf("key", "value"));
  EXPECT_EQ(test_support::Hex(bytes).substr(16),
            "4800000009000000"
            "0a00000000000000"
            "803f000000000000"
            "0b00000000000000"
            "0700000000000000"
            "0500000009000000"
            "0300000000000000"
            "76616c75656b6579");
  std::vector<std::byte> sealed = bytes;
  ASSERT_TRUE(SealUpdate(sealed, kPlace));
  EXPECT_EQ(sealed, bytes) << "the checksum is made of three, in this way";
}

TEST(RingRecordTest, OfAnUpdateIsRefusedIfAPeerSealsWhatNobodyEncodes) {
  const auto is_taken = [](size_t at, uint8_t value) {
    std::vector<std::byte> bytes = Encoded(UpdateOf("key", "valu"));
    bytes[at] = std::byte{value};
    return SealUpdate(bytes, kPlace) && DecodeRingRecord(bytes, kPlace).has_value();
  };
  EXPECT_TRUE(is_taken(offsetof(UpdateHeader, flags), 77));
  EXPECT_FALSE(is_taken(offsetof(UpdateHeader, key_bytes), 0));
  EXPECT_FALSE(is_taken(offsetof(UpdateHeader, key_bytes), 5)) << "beyond the record";
  EXPECT_FALSE(is_taken(offsetof(UpdateHeader, key_bytes), 2)) << "padding that is not zero";
  EXPECT_FALSE(is_taken(offsetof(UpdateHeader, key_bytes) + 2, 1)) << "an expiry";
  EXPECT_FALSE(is_taken(offsetof(UpdateHeader, key_bytes) + 7, 1)) << "an expiry";
  EXPECT_FALSE(is_taken(offsetof(UpdateHeader, value_bytes) + 3, 1)) << "beyond the record";
  EXPECT_FALSE(is_taken(sizeof(UpdateHeader) + 7, 1)) << "padding that is not zero";
  for (size_t i = 0; i < 3; ++i) EXPECT_FALSE(is_taken(offsetof(RingRecordStart, zero) + i, 1));
}

// Encodes a record, changes it at one place, and seals it again.
template <class Value>
bool IsTakenWith(const RingRecord& record, size_t at, Value value) {
  std::vector<std::byte> bytes = Encoded(record);
  std::memcpy(bytes.data() + at, &value, sizeof(value));
  const uint64_t checksum =
      Xxh3(bytes.data() + 8, bytes.size() - 8, Mix64(kPlace.stream_id ^ Mix64(kPlace.lsn)));
  std::memcpy(bytes.data(), &checksum, sizeof(checksum));
  return DecodeRingRecord(bytes, kPlace).has_value();
}

// Whoever can compute the checksum can write anything behind it.
TEST(RingRecordTest, IsRefusedIfAPeerSealsWhatNobodyEncodes) {
  const auto sealed = IsTakenWith<uint32_t>;
  const RingRecord part = RingRecord::Part(9, 0, "part of a value");
  EXPECT_TRUE(sealed(part, offsetof(PartHeader, offset), 8));
  EXPECT_FALSE(sealed(part, offsetof(PartHeader, offset), kValueBytesMax)) << "beyond a value";
  EXPECT_FALSE(sealed(part, offsetof(PartHeader, bytes), 0));
  EXPECT_FALSE(sealed(part, offsetof(PartHeader, bytes), 500)) << "beyond the record";
  EXPECT_FALSE(sealed(part, offsetof(PartHeader, bytes), 14)) << "padding that is not zero";
  EXPECT_FALSE(sealed(part, offsetof(RingRecordStart, kind), 0x0103)) << "a byte that is zero";
  const RingRecord put = LongPutOf("key", 1);
  EXPECT_TRUE(sealed(put, offsetof(RecordHeader, value_bytes), kValueBytesMax));
  EXPECT_FALSE(sealed(put, offsetof(RecordHeader, value_bytes), kValueBytesMax + 1));
  EXPECT_FALSE(sealed(put, offsetof(RecordHeader, value_bytes), kPartBytes)) << "a short value";
}

TEST(RingRecordTest, OfABatchHasTheseBytes) {
  const std::vector<std::byte> bytes = Encoded(RingRecord::UpdateBatch(TwoBodies()));
  uint64_t item = UpdateOf("key", "valu").change.item_checksum;
  EXPECT_EQ(test_support::Hex(std::span(bytes).first(32 + 56)).substr(16),
            "900000000a000000"
            "0200000000000000"
            "803f000000000000"
            "0a00000000000000" +
                test_support::Hex(std::as_bytes(std::span(&item, 1))) +
                "0b00000000000000"
                "0700000000000000"
                "0400000009000000"
                "0300000000000000"
                "76616c756b657900");
}

TEST(RingRecordTest, OfABatchIsRefusedIfAPeerSealsWhatNobodyEncodes) {
  const auto is_taken = [](size_t at, uint8_t value) {
    return IsTakenWith<uint8_t>(RingRecord::UpdateBatch(TwoBodies()), at, value);
  };
  constexpr size_t kFirst = sizeof(UpdateBatchHeader);
  constexpr size_t kSecond = kFirst + UpdateBodyBytes(3, 4);
  EXPECT_FALSE(is_taken(offsetof(UpdateBatchHeader, count), 1));
  EXPECT_FALSE(is_taken(offsetof(UpdateBatchHeader, count), 3));
  EXPECT_FALSE(is_taken(offsetof(UpdateBatchHeader, zero), 1));
  for (size_t i = 0; i < 3; ++i) EXPECT_FALSE(is_taken(offsetof(RingRecordStart, zero) + i, 1));
  for (const size_t at : {kFirst, kSecond}) {
    EXPECT_TRUE(is_taken(at + offsetof(UpdateBody, flags), 77));
    EXPECT_TRUE(is_taken(at + offsetof(UpdateBody, item_checksum), 77)) << "as a wrong value";
    EXPECT_FALSE(is_taken(at + offsetof(UpdateBody, key_bytes), 0));
    EXPECT_FALSE(is_taken(at + offsetof(UpdateBody, key_bytes), 200)) << "beyond the record";
    EXPECT_FALSE(is_taken(at + offsetof(UpdateBody, key_bytes) + 7, 0xff)) << "an overflow";
    EXPECT_FALSE(is_taken(at + offsetof(UpdateBody, value_bytes), 200)) << "beyond the record";
    EXPECT_FALSE(is_taken(at + offsetof(UpdateBody, value_bytes) + 3, 1)) << "beyond the record";
  }
  EXPECT_FALSE(is_taken(kFirst + sizeof(UpdateBody) + 7, 1)) << "padding that is not zero";
  EXPECT_FALSE(is_taken(kFirst + offsetof(UpdateBody, key_bytes), 2)) << "padding that is not zero";
  std::vector<std::byte> empty(sizeof(UpdateBatchHeader));
  EncodeUpdateBatchHeader(0, kCommitted, empty);
  SealRingRecord(empty, kPlace);
  EXPECT_FALSE(DecodeRingRecord(empty, kPlace).has_value()) << "no update";
}

TEST(RingRecordTest, OfASessionIsRefusedIfAFieldCannotBe) {
  const RingRecord begun = SessionBegunOf(1);
  const size_t zero = offsetof(SessionBegunHeader, zero);
  EXPECT_TRUE(IsTakenWith<uint8_t>(begun, offsetof(SessionBegunHeader, read_only), 0));
  EXPECT_FALSE(IsTakenWith<uint8_t>(begun, offsetof(SessionBegunHeader, read_only), 2));
  EXPECT_FALSE(IsTakenWith<uint64_t>(begun, offsetof(SessionBegunHeader, token), 0));
  EXPECT_FALSE(IsTakenWith<uint32_t>(begun, offsetof(SessionBegunHeader, id), 0));
  EXPECT_FALSE(IsTakenWith<uint32_t>(begun, offsetof(SessionBegunHeader, key_id), 0))
      << "what only reads has a key";
  EXPECT_FALSE(IsTakenWith<uint16_t>(begun, offsetof(SessionBegunHeader, credits), 0));
  for (size_t i = 0; i < 5; ++i) EXPECT_FALSE(IsTakenWith<uint8_t>(begun, zero + i, 1)) << i;
  EXPECT_FALSE(IsTakenWith<uint8_t>(begun, offsetof(RingRecordStart, zero), 1));
  EXPECT_FALSE(IsTakenWith<uint64_t>(SessionEndedOf(1), offsetof(SessionEndedHeader, token), 0));
  EXPECT_FALSE(IsTakenWith<uint8_t>(SessionEndedOf(1), offsetof(RingRecordStart, kind), 6))
      << "the length of another kind";
  const RingRecord answers = AnswersOf(1, 0);
  EXPECT_TRUE(IsTakenWith<uint64_t>(answers, offsetof(AnswersHeader, undone_by), 77));
  EXPECT_FALSE(IsTakenWith<uint64_t>(answers, offsetof(AnswersHeader, token), 0));
  for (const uint32_t count : {0, 1, 3}) {
    EXPECT_FALSE(IsTakenWith<uint32_t>(answers, offsetof(AnswersHeader, count), count)) << count;
  }
  EXPECT_FALSE(IsTakenWith<uint32_t>(answers, offsetof(AnswersHeader, zero), 1));
  for (size_t i = 0; i < 2; ++i) {
    const size_t at = sizeof(AnswersHeader) + i * sizeof(SessionAnswer);
    EXPECT_TRUE(IsTakenWith<uint64_t>(answers, at + offsetof(SessionAnswer, words), 77));
    EXPECT_FALSE(IsTakenWith<uint64_t>(answers, at + offsetof(SessionAnswer, sequence), 0));
    EXPECT_FALSE(IsTakenWith<uint8_t>(answers, at + offsetof(SessionAnswer, opcode), 1)) << "GET";
    EXPECT_FALSE(IsTakenWith<uint8_t>(answers, at + offsetof(SessionAnswer, opcode), 4)) << "LOCK";
    EXPECT_TRUE(IsTakenWith<uint8_t>(answers, at + offsetof(SessionAnswer, status), 24));
    EXPECT_FALSE(IsTakenWith<uint8_t>(answers, at + offsetof(SessionAnswer, status), 25));
    EXPECT_FALSE(IsTakenWith<uint8_t>(answers, at + offsetof(SessionAnswer, zero) + 5, 1));
  }
}

TEST(RingRecordTest, HasNoMoreAnswersThanItMay) {
  const std::vector<SessionAnswer> most(SessionRecord::kAnswersMax, kTwoAnswers[0]);
  std::vector<std::byte> bytes = Encoded(RingRecord::OfSession(SessionRecord::Answers(1, most)));
  const auto* const one = reinterpret_cast<const std::byte*>(kTwoAnswers);
  bytes.insert(bytes.end(), one, one + sizeof(SessionAnswer));
  AnswersHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  ++header.count;
  header.start.record_bytes = static_cast<uint32_t>(bytes.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  header.start.checksum =
      Xxh3(bytes.data() + 8, bytes.size() - 8, Mix64(kPlace.stream_id ^ Mix64(kPlace.lsn)));
  std::memcpy(bytes.data(), &header, sizeof(header));
  EXPECT_FALSE(DecodeRingRecord(bytes, kPlace).has_value());
}

}  // namespace
}  // namespace gannet
