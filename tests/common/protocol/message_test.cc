#include "common/protocol/message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "common/protocol/plain_put.h"
#include "tests/common/protocol/encoded.h"
#include "tests/common/protocol/example_heats.h"
#include "tests/common/protocol/example_item_leases.h"
#include "tests/common/protocol/example_rails.h"
#include "tests/common/protocol/golden_bytes.h"

namespace gannet {
namespace {

// A heartbeat may carry touches, each of 8 bytes. Others carry no value outside of a buffer.
TEST(MessageTest, AHeartbeatCarriesTouches) {
  RequestHeader heartbeat{};
  for (const uint32_t bytes : {0u, 8u, 4032u}) {
    heartbeat.value_bytes = bytes;
    const std::string touches(bytes, 't');
    const auto message = Encode(heartbeat, "", touches);
    RequestView view;
    ASSERT_FALSE(DecodeRequest(message, &view).has_value()) << bytes;
    EXPECT_EQ(view.value, touches);
  }
  heartbeat.value_bytes = 12;
  EXPECT_EQ(Refusal(Encode(heartbeat, "", std::string(12, 't'))), ReplyStatus::kInvalidArgument);
  heartbeat.value_bytes = 16;
  EXPECT_EQ(Refusal(Encode(heartbeat, "", std::string(8, 't'))), ReplyStatus::kInvalidArgument);
}

TEST(MessageTest, GoldenBytesOfTheStats) {
  StatsReply stats;
  static_assert(sizeof(stats) % sizeof(uint64_t) == 0);
  uint64_t words[sizeof(stats) / sizeof(uint64_t)];
  for (uint64_t i = 0; i < std::size(words); ++i) words[i] = i + 1;
  std::memcpy(&stats, words, sizeof(stats));
  const uint64_t fields[] = {stats.rpcs,
                             stats.heartbeats,
                             stats.cpu_us,
                             stats.slots_used,
                             stats.slots_total,
                             stats.heap_bytes,
                             stats.heap_total,
                             stats.sessions,
                             stats.connections,
                             stats.items,
                             stats.displacements,
                             stats.stash_used,
                             stats.locks_broken,
                             stats.uptime_ms,
                             stats.session_bytes,
                             stats.reply_posts,
                             stats.receive_posts,
                             stats.send_completions,
                             stats.refused_heap_full,
                             stats.refused_index_full,
                             stats.items_expired,
                             stats.items_moved,
                             stats.locks_expired,
                             stats.refused_connections,
                             stats.refused_requests,
                             stats.index_growths,
                             stats.items_deleted,
                             stats.items_evicted,
                             stats.evicted_by_writes,
                             stats.eviction_watermark,
                             stats.evicted_age_ms,
                             stats.disk_sync,
                             stats.disk_bytes,
                             stats.disk_behind_bytes,
                             stats.disk_behind_ms,
                             stats.disk_refused,
                             stats.disk_snapshots,
                             stats.items_expiring,
                             stats.items_leased,
                             stats.lease_waits,
                             stats.lease_waited_ms,
                             stats.items_on_disk,
                             stats.tier_disk,
                             stats.tier_bytes,
                             stats.tier_written,
                             stats.tier_evicted,
                             stats.tier_reads,
                             stats.tier_reads_joined,
                             stats.tier_reads_failed,
                             stats.tier_read_us,
                             stats.tier_page_cache,
                             stats.tier_stub_bytes,
                             stats.tier_stub_budget,
                             stats.tier_promoted};
  for (uint64_t i = 0; i < std::size(words); ++i) EXPECT_EQ(fields[i], i + 1);
}

TEST(MessageTest, GoldenNumbersOfOpcodesFlagsAndStatuses) {
  EXPECT_EQ(static_cast<int>(Opcode::kHeartbeat), 0);
  EXPECT_EQ(static_cast<int>(Opcode::kPing), 7);
  EXPECT_EQ(static_cast<int>(Opcode::kListLocks), 9);
  EXPECT_EQ(static_cast<int>(Opcode::kAppend), 10);
  EXPECT_EQ(static_cast<int>(Opcode::kFlush), 14);
  EXPECT_EQ(kOnlyIfPresent, 32);
  EXPECT_EQ(static_cast<int>(ReplyStatus::kNotANumber), 13);
  EXPECT_EQ(static_cast<int>(ReplyStatus::kTooLong), 15);
  EXPECT_EQ(static_cast<int>(ReplyStatus::kDiskRefuses), 16);
  EXPECT_EQ(static_cast<int>(ReplyStatus::kTooFewCopies), 17);
  EXPECT_EQ(static_cast<int>(ReplyStatus::kElsewhere), 18);
  EXPECT_EQ(static_cast<int>(ReplyStatus::kOutcomeUnknown), 19);
  EXPECT_EQ(kForce, 16);
  EXPECT_EQ(kOnlyIfAbsent | kOnlyIfVersion << 4 | kUnderLock << 8 | kValueInBuffer << 12, 0x8421);
  EXPECT_EQ(static_cast<int>(ReplyStatus::kHeapFull), 6);
  EXPECT_EQ(static_cast<int>(ReplyStatus::kIndexFull), 12);
}

TEST(MessageTest, DecodesWhatItEncoded) {
  const std::string value(EagerValueBytesMax(250), 'v');
  const std::string key(250, 'k');
  const auto message = Encode(APut(key, value), key, value);
  EXPECT_EQ(message.size(), kMessageBytesMax);
  RequestView view;
  EXPECT_FALSE(DecodeRequest(message, &view).has_value());
  EXPECT_EQ(view.key, key);
  EXPECT_EQ(view.value, value);
}

TEST(MessageTest, AcceptsEveryOpcode) {
  for (const Opcode opcode : {Opcode::kGet, Opcode::kPut, Opcode::kDelete, Opcode::kAppend,
                              Opcode::kPrepend, Opcode::kTouch}) {
    EXPECT_EQ(Refusal(Encode(ARequest(opcode), "key", "")), std::nullopt);
  }
  for (const Opcode opcode : {Opcode::kLock, Opcode::kUnlock, Opcode::kExtendLock}) {
    RequestHeader header = ARequest(opcode);
    header.lock.lock_word = 1;
    EXPECT_EQ(Refusal(Encode(header, "key", "")), std::nullopt);
  }
  for (const Opcode opcode :
       {Opcode::kHeartbeat, Opcode::kStats, Opcode::kPing, Opcode::kListLocks, Opcode::kFlush,
        Opcode::kStorage, Opcode::kListClients, Opcode::kSlowLog, Opcode::kHeats, Opcode::kMap,
        Opcode::kItemLeases, Opcode::kRails}) {
    RequestHeader header = ARequest(opcode);
    header.key_bytes = 0;
    header.sequence = opcode == Opcode::kHeartbeat ? 0 : 1;
    EXPECT_EQ(Refusal(Encode(header, "", "")), std::nullopt);
  }
}

TEST(MessageTest, RefusesWhatRailsAreNotAskedFor) {
  RequestHeader header = ARequest(Opcode::kRails);
  header.key_bytes = 0;
  header.sequence = 1;
  header.words[0] = static_cast<uint64_t>(RailsAsk::kLost);
  EXPECT_EQ(Refusal(Encode(header, "", "")), std::nullopt);
  ++header.words[0];
  EXPECT_EQ(Refusal(Encode(header, "", "")), ReplyStatus::kInvalidArgument);
}

TEST(MessageTest, ValueInABufferIsNotInTheMessage) {
  RequestHeader header = APut("key", "");
  header.flags = kValueInBuffer;
  header.value_bytes = kValueBytesMax;
  EXPECT_EQ(Refusal(Encode(header, "key", "")), std::nullopt);
  EXPECT_EQ(Refusal(Encode(header, "key", "v")), ReplyStatus::kInvalidArgument);
}

TEST(MessageTest, SegmentsOfAValueFollowTheKey) {
  const ValueSegment segments[] = {{0x1000, 7, 100}, {0x9000, 8, 5'000}};
  const std::string_view bytes(reinterpret_cast<const char*>(segments), sizeof(segments));
  RequestHeader header = APut("key", "");
  header.flags = kValueInSegments;
  header.write.segments = 2;
  header.value_bytes = 5'100;
  RequestView view;
  const auto message = Encode(header, "key", bytes);
  EXPECT_EQ(DecodeRequest(message, &view), std::nullopt);
  EXPECT_EQ(view.value, bytes);
  EXPECT_EQ(view.key, "key");
  header.value_bytes = 5'101;  // not what they hold
  EXPECT_EQ(Refusal(Encode(header, "key", bytes)), ReplyStatus::kInvalidArgument);
  header.value_bytes = 5'100;
  header.write.segments = 3;  // not as many as there are
  EXPECT_EQ(Refusal(Encode(header, "key", bytes)), ReplyStatus::kInvalidArgument);
  header.write.segments = 0xffffffff;
  EXPECT_EQ(Refusal(Encode(header, "key", bytes)), ReplyStatus::kInvalidArgument);
  header.write.segments = 2;
  header.flags |= kValueInBuffer;
  EXPECT_EQ(Refusal(Encode(header, "key", bytes)), ReplyStatus::kInvalidArgument);
  header.flags = 0;  // then the number means nothing, and must be 0
  EXPECT_EQ(Refusal(Encode(header, "key", std::string(5'100, 'v'))), ReplyStatus::kInvalidArgument);
  header.flags = kValueInSegments;
  header.opcode = static_cast<uint8_t>(Opcode::kGet);
  EXPECT_EQ(Refusal(Encode(header, "key", bytes)), ReplyStatus::kInvalidArgument);
  const ValueSegment empty[] = {{0x1000, 7, 5'100}, {0x9000, 8, 0}};
  header.opcode = static_cast<uint8_t>(Opcode::kPut);
  EXPECT_EQ(Refusal(Encode(header, "key", {reinterpret_cast<const char*>(empty), sizeof(empty)})),
            ReplyStatus::kInvalidArgument);
}

TEST(MessageTest, RefusesEveryLengthButTheRightOne) {
  const auto right = Encode(APut("key", "value"), "key", "value");
  for (size_t size = sizeof(RequestHeader); size <= right.size() + 8; ++size) {
    std::vector<std::byte> message = right;
    message.resize(size);
    EXPECT_EQ(!Refusal(message), size == right.size()) << size;
  }
}

TEST(MessageTest, RefusesWhatItDoesNotKnowAsUnimplemented) {
  EXPECT_EQ(static_cast<int>(Opcode::kStorage), 20);
  EXPECT_EQ(static_cast<int>(Opcode::kListClients), 23);
  EXPECT_EQ(static_cast<int>(Opcode::kSlowLog), 24);
  EXPECT_EQ(static_cast<int>(Opcode::kMap), 26);
  EXPECT_EQ(static_cast<int>(Opcode::kHeats), 25);
  EXPECT_EQ(static_cast<int>(Opcode::kItemLeases), 27);
  EXPECT_EQ(static_cast<int>(Opcode::kRails), 28);
  for (int opcode = static_cast<int>(Opcode::kFlush) + 1; opcode <= 255; ++opcode) {
    if (opcode == 20 || (opcode >= 23 && opcode <= 28)) continue;
    EXPECT_EQ(Refusal(Encode(ARequest(static_cast<Opcode>(opcode)), "key", "")),
              ReplyStatus::kUnimplemented);
  }
}

TEST(MessageTest, GoldenBytesOfHeats) {
  EXPECT_EQ(HexOf(kExampleHeats),
            "00 00 00 90 5a 7f 00 00 08 00 00 01 00 00 00 00\n"
            "03 10 00 00 40 00 60 08 88 00 00 00 00 00 00 00");
}

TEST(MessageTest, GoldenBytesOfItemLeases) {
  EXPECT_EQ(HexOf(kExampleItemLeases),
            "00 00 00 a0 5a 7f 00 00 04 10 00 00 00 04 00 00\n"
            "14 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
}

TEST(MessageTest, GoldenBytesOfRails) {
  EXPECT_EQ(HexOfRails(kExampleRails),
            "02 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00\n"
            "00 00 ff ff 0a 00 00 01 2f 1d 00 10 a0 86 01 00\n"
            "01 01 00 00 2c 01 00 00 00 00 00 00 00 00 00 00\n"
            "00 00 ff ff 0a 00 01 01 2f 1d 00 10 a0 86 01 00\n"
            "02 02 00 00 02 00 00 00");
}

TEST(MessageTest, RefusesHostileRails) {
  const auto decoded = [](RailsReply rails, size_t bytes) {
    return DecodeRails({reinterpret_cast<const char*>(&rails), bytes});
  };
  const size_t bytes = kExampleRails.Bytes();
  EXPECT_EQ(decoded(kExampleRails, bytes).count, 2);
  EXPECT_EQ(decoded(kExampleRails, bytes).rails[1].port, 7471);
  for (size_t shorter = 0; shorter < bytes; ++shorter) {
    EXPECT_EQ(decoded(kExampleRails, shorter).count, 0) << shorter;
  }
  RailsReply wrong = kExampleRails;
  wrong.count = kRailsMax + 1;
  EXPECT_EQ(decoded(wrong, sizeof(wrong)).count, 0);
  wrong = kExampleRails;
  wrong.lock_rail = 2;
  EXPECT_EQ(decoded(wrong, bytes).count, 0);
  wrong = kExampleRails;
  wrong.own_rail = 2;
  EXPECT_EQ(decoded(wrong, bytes).count, 0);
  EXPECT_EQ(decoded(RailsReply{}, sizeof(RailsReply)).count, 0);
}

TEST(MessageTest, RefusesFlagsOfOtherOpcodes) {
  const auto refused = [](Opcode opcode, uint8_t flags) {
    RequestHeader header = ARequest(opcode);
    header.flags = flags;
    (opcode == Opcode::kUnlock ? header.lock.lock_word : header.write.lock_word) = 1;
    return Refusal(Encode(header, "key", "")) == ReplyStatus::kInvalidArgument;
  };
  EXPECT_TRUE(refused(Opcode::kGet, kOnlyIfAbsent));
  EXPECT_TRUE(refused(Opcode::kDelete, kOnlyIfAbsent));
  EXPECT_TRUE(refused(Opcode::kDelete, kValueInBuffer));
  EXPECT_TRUE(refused(Opcode::kDelete, kOnlyIfPresent));
  EXPECT_TRUE(refused(Opcode::kAppend, kOnlyIfAbsent));
  EXPECT_TRUE(refused(Opcode::kAppend, kValueInBuffer));
  EXPECT_TRUE(refused(Opcode::kTouch, kOnlyIfPresent));
  EXPECT_TRUE(refused(Opcode::kPut, kOnlyIfAbsent | kOnlyIfPresent));
  EXPECT_FALSE(refused(Opcode::kPut, kOnlyIfPresent | kOnlyIfVersion));
  EXPECT_FALSE(refused(Opcode::kAppend, kOnlyIfPresent | kOnlyIfVersion | kUnderLock));
  EXPECT_FALSE(refused(Opcode::kTouch, kOnlyIfVersion | kUnderLock));
  EXPECT_TRUE(refused(Opcode::kLock, kOnlyIfVersion));
  EXPECT_TRUE(refused(Opcode::kLock, kForce));
  EXPECT_TRUE(refused(Opcode::kLock, kSentAgain));
  EXPECT_TRUE(refused(Opcode::kGet, kSentAgain));
  EXPECT_FALSE(refused(Opcode::kPut, kSentAgain));
  EXPECT_FALSE(refused(Opcode::kAppend, kSentAgain));
  EXPECT_FALSE(refused(Opcode::kDelete, kSentAgain));
  EXPECT_FALSE(refused(Opcode::kUnlock, kForce));
  EXPECT_FALSE(refused(Opcode::kDelete, kOnlyIfVersion | kUnderLock));
}

TEST(MessageTest, APlainPutIsWhatDecodeRequestSays) {
  RequestHeader header = APut("key", "value");
  header.write.user_flags = 0x12345678;
  // Without their flags these mean nothing.
  header.write.expected_version = header.write.lock_word = header.write.buffer_address = 9;
  const auto message = Encode(header, "key", "value");
  PlainPut put;
  ASSERT_TRUE(put.Decode(message));
  EXPECT_EQ(put.sequence(), header.sequence);
  EXPECT_EQ(put.TakeUserFlags(), header.write.user_flags);
  EXPECT_EQ(put.key(), "key");
  EXPECT_EQ(put.value(), "value");
  EXPECT_EQ(Refusal(message), std::nullopt);
}

TEST(MessageTest, NothingButAPlainPutIsDecodedAsOne) {
  const auto right = Encode(APut("key", "value"), "key", "value");
  PlainPut put;
  for (size_t size = 0; size <= right.size() + 8; ++size) {
    std::vector<std::byte> message = right;
    message.resize(std::max(size, sizeof(RequestHeader)));
    EXPECT_EQ(put.Decode(std::span(message).first(size)), size == right.size()) << size;
  }
  for (int opcode = 0; opcode < 256; ++opcode) {
    RequestHeader header = APut("key", "value");
    header.opcode = static_cast<uint8_t>(opcode);
    EXPECT_EQ(put.Decode(Encode(header, "key", "value")), opcode == static_cast<int>(Opcode::kPut));
  }
  const auto decoded_with = [&](void (*change)(RequestHeader*)) {
    RequestHeader header = APut("key", "value");
    change(&header);
    return put.Decode(Encode(header, "key", "value"));
  };
  EXPECT_TRUE(decoded_with([](RequestHeader*) {}));
  EXPECT_FALSE(decoded_with([](RequestHeader* h) { h->flags = kOnlyIfAbsent; }));
  EXPECT_FALSE(decoded_with([](RequestHeader* h) { h->flags = 1 << 7; }));
  EXPECT_FALSE(decoded_with([](RequestHeader* h) { h->write.ttl_ms = 1; }));
}

TEST(MessageTest, AnIncrementHasTwoOperands) {
  RequestHeader header = ARequest(Opcode::kIncrement);
  header.flags = kOnlyIfPresent;
  header.value_bytes = sizeof(CounterOperands);
  const std::string value(sizeof(CounterOperands), '\0');
  EXPECT_EQ(Refusal(Encode(header, "key", value)), std::nullopt);
  header.value_bytes -= 1;
  EXPECT_EQ(Refusal(Encode(header, "key", value.substr(1))), ReplyStatus::kInvalidArgument);
}

TEST(MessageTest, AForcedUnlockNamesAnyLockOrNone) {
  RequestHeader header = ARequest(Opcode::kUnlock);
  header.flags = kForce;
  EXPECT_EQ(Refusal(Encode(header, "key", "")), std::nullopt);
  header.lock.lock_word = 7;
  EXPECT_EQ(Refusal(Encode(header, "key", "")), std::nullopt);
}

TEST(MessageTest, GoldenBytesOfALock) {
  LockEntry entry{};
  entry.lock_word = 0x0102030405060708;
  entry.index = 0x11121314;
  entry.session_id = 0x21222324;
  entry.lease_ms = 0x31323334;
  std::memcpy(entry.peer, "1.2.3.4:5", 9);
  EXPECT_EQ(HexOf(entry).substr(0, 3 * 48 - 1),
            "08 07 06 05 04 03 02 01 14 13 12 11 24 23 22 21\n"
            "34 33 32 31 00 00 00 00 31 2e 32 2e 33 2e 34 3a\n"
            "35 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
}

struct Fault {
  const char* name;
  void (*apply)(RequestHeader* header);
};

class HostileRequest : public testing::TestWithParam<Fault> {};

TEST_P(HostileRequest, IsRefused) {
  RequestHeader header = APut("key", "");
  GetParam().apply(&header);
  EXPECT_EQ(Refusal(Encode(header, "key", "")), ReplyStatus::kInvalidArgument);
  EXPECT_FALSE(PlainPut().Decode(Encode(header, "key", "")));
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileRequest,
    testing::Values(
        Fault{"NoKey", [](RequestHeader* h) { h->key_bytes = 0; }},
        Fault{"KeyTooLong", [](RequestHeader* h) { h->key_bytes = kKeyBytesMax + 1; }},
        Fault{"KeyBeyondTheMessage", [](RequestHeader* h) { h->key_bytes = 4; }},
        Fault{"KeyLengthAllOnes", [](RequestHeader* h) { h->key_bytes = 0xffff; }},
        Fault{"ValueBeyondTheMessage", [](RequestHeader* h) { h->value_bytes = 1; }},
        Fault{"ValueTooLong", [](RequestHeader* h) { h->value_bytes = kValueBytesMax + 1; }},
        Fault{"ValueLengthAllOnes", [](RequestHeader* h) { h->value_bytes = 0xffffffff; }},
        Fault{"NoSequenceNumber", [](RequestHeader* h) { h->sequence = 0; }},
        Fault{"TimeToLiveTooLong", [](RequestHeader* h) { h->write.ttl_ms = kTtlMsMax + 1; }},
        Fault{"ReservedBytes", [](RequestHeader* h) { h->write.reserved = 1u << 31; }},
        Fault{"SegmentsWithoutTheFlag", [](RequestHeader* h) { h->write.segments = 1; }},
        Fault{"LockWithoutVersion",
              [](RequestHeader* h) {
                h->flags = kUnderLock;
                h->write.lock_word = 1;
              }},
        Fault{"LockWordOfNobody", [](RequestHeader* h) { h->flags = kUnderLock | kOnlyIfVersion; }},
        Fault{"AbsentAndVersion",
              [](RequestHeader* h) { h->flags = kOnlyIfAbsent | kOnlyIfVersion; }},
        Fault{"UnlockNothing",
              [](RequestHeader* h) { h->opcode = static_cast<uint8_t>(Opcode::kUnlock); }},
        Fault{"PingWithAKey",
              [](RequestHeader* h) { h->opcode = static_cast<uint8_t>(Opcode::kPing); }},
        Fault{"HeartbeatWithASequenceNumber",
              [](RequestHeader* h) {
                h->opcode = static_cast<uint8_t>(Opcode::kHeartbeat);
                h->key_bytes = 0;
              }}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(MessageTest, DecodesAReply) {
  ReplyHeader header{};
  header.value_bytes = 5;
  const auto message = Encode(header, "value");
  ReplyView view;
  ASSERT_TRUE(DecodeReply(message, &view));
  EXPECT_EQ(view.value, "value");
  header.opcode = static_cast<uint8_t>(Opcode::kGet);
  header.get.value_in_buffer = 1;
  header.value_bytes = kValueBytesMax;
  EXPECT_TRUE(IsReply(Encode(header, "")));
  header.get.value_in_buffer = 0;
  header.status = static_cast<uint8_t>(ReplyStatus::kBufferTooSmall);
  EXPECT_TRUE(IsReply(Encode(header, "")));
}

TEST(MessageTest, OnlyARepliedHeartbeatTellsALease) {
  ReplyHeader header{};
  header.primary_lease_ms = 600;
  ReplyView view;
  ASSERT_TRUE(DecodeReply(Encode(header, ""), &view));
  EXPECT_EQ(view.header.primary_lease_ms, 600u);
  for (uint8_t opcode = 1; opcode <= static_cast<uint8_t>(Opcode::kRails); ++opcode) {
    header.opcode = opcode;
    EXPECT_FALSE(IsReply(Encode(header, ""))) << int{opcode};
  }
}

TEST(MessageTest, RefusesHostileReplies) {
  ReplyHeader right{};
  right.opcode = static_cast<uint8_t>(Opcode::kGet);
  right.value_bytes = 5;
  for (size_t size = 0; size <= sizeof(right) + 16; ++size) {
    std::vector<std::byte> message = Encode(right, "value");
    message.resize(size);
    EXPECT_EQ(IsReply(message), size == sizeof(right) + 5) << size;
  }
  const auto refused = [&right](auto change) {
    ReplyHeader header = right;
    change(&header);
    return !IsReply(Encode(header, "value"));
  };
  EXPECT_TRUE(refused([](ReplyHeader* h) { h->value_bytes = 6; }));
  EXPECT_TRUE(refused([](ReplyHeader* h) { h->value_bytes = 0xffffffff; }));
  EXPECT_TRUE(refused([](ReplyHeader* h) { h->get.value_in_buffer = 1; }));
  EXPECT_TRUE(refused([](ReplyHeader* h) { h->get.value_in_buffer = 2; }));
  EXPECT_TRUE(refused([](ReplyHeader* h) { h->primary_lease_ms = 1; }));
}

}  // namespace
}  // namespace gannet
