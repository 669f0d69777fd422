// The bytes of each kind of request and of reply. Whoever changes them changes the protocol, and
// must also raise its version and update docs/protocol.md.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "common/protocol/message.h"
#include "common/protocol/rails_reply.h"
#include "common/protocol/storage.h"
#include "tests/common/protocol/encoded.h"

namespace gannet {
namespace {

constexpr std::string_view kZeroes = "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00";

// Returns a request with a number of its own in each byte of the first 16 but `value_bytes`.
RequestHeader Request(Opcode opcode, uint8_t flags = 0) {
  RequestHeader header = ARequest(opcode);
  header.flags = flags;
  header.sequence = 0x0102030405060708;
  return header;
}

// Returns such a reply.
ReplyHeader Reply(Opcode opcode, ReplyStatus status = ReplyStatus::kOk) {
  ReplyHeader header{};
  header.opcode = static_cast<uint8_t>(opcode);
  header.status = static_cast<uint8_t>(status);
  header.sequence = 0x0102030405060708;
  return header;
}

std::string Lines(std::initializer_list<std::string_view> lines) {
  std::string text;
  for (const std::string_view line : lines) {
    if (!text.empty()) text += '\n';
    text += line;
  }
  return text;
}

TEST(GoldenRequestTest, Heartbeat) {
  RequestHeader header = Request(Opcode::kHeartbeat);
  header.key_bytes = 0;
  header.sequence = 0;
  header.value_bytes = 40;
  header.heartbeat = {.index_acknowledged = 0x11121314,
                      .index_newest = 0x21222324,
                      .server_set = 0x3132333435363738,
                      .report_bytes = 32};
  EXPECT_EQ(HexOf(header), Lines({"00 00 00 00 28 00 00 00 00 00 00 00 00 00 00 00",
                                  "14 13 12 11 24 23 22 21 38 37 36 35 34 33 32 31",
                                  "20 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", kZeroes}));
  EXPECT_EQ(Refusal(Encode(header, "", std::string(40, '\0'))), std::nullopt);
}

TEST(GoldenRequestTest, Get) {
  RequestHeader header = Request(Opcode::kGet, kValueInBuffer);
  header.get = {
      .buffer_address = 0x1112131415161718, .buffer_rkey = 0x21222324, .buffer_bytes = 0x31323334};
  EXPECT_EQ(HexOf(header),
            Lines({"01 08 03 00 00 00 00 00 08 07 06 05 04 03 02 01",
                   "18 17 16 15 14 13 12 11 24 23 22 21 34 33 32 31", kZeroes, kZeroes}));
  EXPECT_EQ(Refusal(Encode(header, "key", "")), std::nullopt);
}

TEST(GoldenRequestTest, Put) {
  RequestHeader header = Request(Opcode::kPut, kOnlyIfVersion | kUnderLock | kValueInBuffer);
  header.value_bytes = 5;
  header.write = {.ttl_ms = 0x0000112233445566,
                  .user_flags = 0x21222324,
                  .buffer_rkey = 0x31323334,
                  .buffer_address = 0x4142434445464748,
                  .expected_version = 0x5152535455565758,
                  .lock_word = 0x6162636465666768};
  const std::string_view own =
      "66 55 44 33 22 11 00 00 24 23 22 21 34 33 32 31\n"
      "48 47 46 45 44 43 42 41 58 57 56 55 54 53 52 51";
  EXPECT_EQ(HexOf(header), Lines({"02 0e 03 00 05 00 00 00 08 07 06 05 04 03 02 01", own,
                                  "68 67 66 65 64 63 62 61 00 00 00 00 00 00 00 00"}));
  EXPECT_EQ(Refusal(Encode(header, "key", "")), std::nullopt);
  header.flags = kOnlyIfVersion | kUnderLock | kValueInSegments;
  header.write.segments = 1;
  EXPECT_EQ(HexOf(header), Lines({"02 46 03 00 05 00 00 00 08 07 06 05 04 03 02 01", own,
                                  "68 67 66 65 64 63 62 61 01 00 00 00 00 00 00 00"}));
}

TEST(GoldenRequestTest, WritesWithoutABuffer) {
  for (const Opcode opcode : {Opcode::kAppend, Opcode::kPrepend}) {
    RequestHeader header = Request(opcode, kOnlyIfPresent);
    header.value_bytes = 5;
    header.write.ttl_ms = 0x0000112233445566;
    header.write.user_flags = 0x21222324;
    const std::string first = opcode == Opcode::kAppend ? "0a" : "0b";
    EXPECT_EQ(Hex(Encode(header, "key", "piece")),
              Lines({first + " 20 03 00 05 00 00 00 08 07 06 05 04 03 02 01",
                     "66 55 44 33 22 11 00 00 24 23 22 21 00 00 00 00", kZeroes, kZeroes,
                     "6b 65 79 70 69 65 63 65"}));
    EXPECT_EQ(Refusal(Encode(header, "key", "piece")), std::nullopt);
  }
  RequestHeader remove = Request(Opcode::kDelete, kOnlyIfVersion | kUnderLock);
  remove.write.expected_version = 0x5152535455565758;
  remove.write.lock_word = 0x6162636465666768;
  EXPECT_EQ(HexOf(remove), Lines({"03 06 03 00 00 00 00 00 08 07 06 05 04 03 02 01", kZeroes,
                                  "00 00 00 00 00 00 00 00 58 57 56 55 54 53 52 51",
                                  "68 67 66 65 64 63 62 61 00 00 00 00 00 00 00 00"}));
  RequestHeader touch = Request(Opcode::kTouch);
  touch.write.ttl_ms = 0x0000112233445566;
  EXPECT_EQ(HexOf(touch),
            Lines({"0d 00 03 00 00 00 00 00 08 07 06 05 04 03 02 01",
                   "66 55 44 33 22 11 00 00 00 00 00 00 00 00 00 00", kZeroes, kZeroes}));
}

// What is added, and what an absent key counts from.
TEST(GoldenRequestTest, Increment) {
  RequestHeader header = Request(Opcode::kIncrement, kOnlyIfPresent);
  header.value_bytes = sizeof(CounterOperands);
  const CounterOperands operands{.delta = -2, .initial = 0x0102030405060708};
  const std::string_view value(reinterpret_cast<const char*>(&operands), sizeof(operands));
  EXPECT_EQ(Hex(Encode(header, "key", value)),
            Lines({"0c 20 03 00 10 00 00 00 08 07 06 05 04 03 02 01", kZeroes, kZeroes, kZeroes,
                   "6b 65 79 fe ff ff ff ff ff ff ff 08 07 06 05 04", "03 02 01"}));
}

TEST(GoldenRequestTest, Locks) {
  RequestHeader lock = Request(Opcode::kLock);
  lock.lock = {.lock_word = 0x1112131415161718, .lease_ms = 0x0000212223242526};
  const std::string_view own = "18 17 16 15 14 13 12 11 26 25 24 23 22 21 00 00";
  EXPECT_EQ(HexOf(lock),
            Lines({"04 00 03 00 00 00 00 00 08 07 06 05 04 03 02 01", own, kZeroes, kZeroes}));
  lock.opcode = static_cast<uint8_t>(Opcode::kExtendLock);
  EXPECT_EQ(HexOf(lock),
            Lines({"08 00 03 00 00 00 00 00 08 07 06 05 04 03 02 01", own, kZeroes, kZeroes}));
  RequestHeader unlock = Request(Opcode::kUnlock, kForce);
  unlock.lock.lock_word = 0x1112131415161718;
  EXPECT_EQ(HexOf(unlock),
            Lines({"05 10 03 00 00 00 00 00 08 07 06 05 04 03 02 01",
                   "18 17 16 15 14 13 12 11 00 00 00 00 00 00 00 00", kZeroes, kZeroes}));
}

TEST(GoldenRequestTest, ListsFlushAndStorage) {
  const auto hex_of = [](Opcode opcode) {
    RequestHeader header = Request(opcode);
    header.key_bytes = 0;
    if (opcode == Opcode::kFlush) {
      header.flush.position = 0x1112131415161718;
    } else {
      header.list.position = 0x1112131415161718;
    }
    EXPECT_EQ(Refusal(Encode(header, "", "")), std::nullopt);
    return HexOf(header);
  };
  const auto expected = [](std::string_view opcode) {
    return Lines({std::string(opcode) + " 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
                  "18 17 16 15 14 13 12 11 00 00 00 00 00 00 00 00", kZeroes, kZeroes});
  };
  EXPECT_EQ(hex_of(Opcode::kListLocks), expected("09"));
  EXPECT_EQ(hex_of(Opcode::kFlush), expected("0e"));
  EXPECT_EQ(hex_of(Opcode::kListClients), expected("17"));
  EXPECT_EQ(hex_of(Opcode::kSlowLog), expected("18"));
  EXPECT_EQ(hex_of(Opcode::kMap), expected("1a"));
  RequestHeader item_leases = Request(Opcode::kItemLeases);
  item_leases.key_bytes = 0;
  EXPECT_EQ(HexOf(item_leases),
            Lines({"1b 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01", kZeroes, kZeroes, kZeroes}));
  RequestHeader rails = Request(Opcode::kRails);
  rails.key_bytes = 0;
  EXPECT_EQ(HexOf(rails),
            Lines({"1c 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01", kZeroes, kZeroes, kZeroes}));
  rails.words[0] = static_cast<uint64_t>(RailsAsk::kRailsInOrder);
  EXPECT_EQ(Refusal(Encode(rails, "", "")), std::nullopt);
  EXPECT_EQ(HexOf(rails),
            Lines({"1c 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
                   "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", kZeroes, kZeroes}));
  rails.words[0] = static_cast<uint64_t>(RailsAsk::kGivenUp);
  EXPECT_EQ(Refusal(Encode(rails, "", "")), std::nullopt);
  EXPECT_EQ(HexOf(rails),
            Lines({"1c 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
                   "02 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", kZeroes, kZeroes}));
  RequestHeader storage = Request(Opcode::kStorage);
  storage.key_bytes = 0;
  storage.storage.ask = static_cast<uint64_t>(StorageAsk::kSnapshot);
  EXPECT_EQ(HexOf(storage),
            Lines({"14 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
                   "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", kZeroes, kZeroes}));
}

TEST(GoldenReplyTest, Get) {
  ReplyHeader header = Reply(Opcode::kGet);
  header.value_bytes = 5;
  header.get = {.version = 0x1112131415161718,
                .slot = 0x2122232425262728,
                .expiry_ms = 0x3132333435363738,
                .user_flags = 0x41424344};
  const std::string_view own =
      "18 17 16 15 14 13 12 11 28 27 26 25 24 23 22 21\n"
      "38 37 36 35 34 33 32 31 44 43 42 41";
  EXPECT_EQ(Hex(Encode(header, "value")),
            Lines({"01 00 00 00 05 00 00 00 08 07 06 05 04 03 02 01",
                   std::string(own) + " 00 00 00 00", kZeroes, "76 61 6c 75 65"}));
  header.get.value_in_buffer = 1;
  EXPECT_EQ(Hex(Encode(header, "")), Lines({"01 00 00 00 05 00 00 00 08 07 06 05 04 03 02 01",
                                            std::string(own) + " 01 00 00 00", kZeroes}));
}

TEST(GoldenReplyTest, Write) {
  ReplyHeader header = Reply(Opcode::kPut, ReplyStatus::kLockLost);
  header.write = {
      .version = 0x1112131415161718, .slot = 0x2122232425262728, .lock_word = 0x3132333435363738};
  EXPECT_EQ(HexOf(header), Lines({"02 04 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
                                  "18 17 16 15 14 13 12 11 28 27 26 25 24 23 22 21",
                                  "38 37 36 35 34 33 32 31 00 00 00 00 00 00 00 00", kZeroes}));
}

TEST(GoldenReplyTest, Increment) {
  ReplyHeader header = Reply(Opcode::kIncrement);
  header.increment = {.version = 0x1112131415161718, .slot = 0x2122232425262728, .number = -2};
  EXPECT_EQ(HexOf(header), Lines({"0c 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
                                  "18 17 16 15 14 13 12 11 28 27 26 25 24 23 22 21",
                                  "fe ff ff ff ff ff ff ff 00 00 00 00 00 00 00 00", kZeroes}));
}

TEST(GoldenReplyTest, Locks) {
  ReplyHeader header = Reply(Opcode::kLock, ReplyStatus::kLockHeld);
  header.lock.lock_word = 0x1112131415161718;
  EXPECT_EQ(HexOf(header),
            Lines({"04 05 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
                   "18 17 16 15 14 13 12 11 00 00 00 00 00 00 00 00", kZeroes, kZeroes}));
}

TEST(GoldenReplyTest, Flush) {
  ReplyHeader header = Reply(Opcode::kFlush);
  header.flush = {.next = 0x1112131415161718, .removed = 0x2122232425262728};
  EXPECT_EQ(HexOf(header),
            Lines({"0e 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
                   "18 17 16 15 14 13 12 11 28 27 26 25 24 23 22 21", kZeroes, kZeroes}));
}

TEST(GoldenReplyTest, ListsStorageAndClocks) {
  const auto expected = [](std::string_view opcode) {
    return Lines({std::string(opcode) + " 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
                  "18 17 16 15 14 13 12 11 00 00 00 00 00 00 00 00", kZeroes, kZeroes});
  };
  ReplyHeader list = Reply(Opcode::kListLocks);
  list.list.next = 0x1112131415161718;
  EXPECT_EQ(HexOf(list), expected("09"));
  ReplyHeader storage = Reply(Opcode::kStorage);
  storage.storage.snapshot = 0x1112131415161718;
  EXPECT_EQ(HexOf(storage), expected("14"));
  ReplyHeader ping = Reply(Opcode::kPing);
  ping.clock.time_ms = 0x1112131415161718;
  EXPECT_EQ(HexOf(ping), expected("07"));
}

}  // namespace
}  // namespace gannet
