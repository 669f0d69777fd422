#include "server/rpc/dispatcher.h"

#include <array>
#include <cstring>
#include <string>

#include "gtest/gtest.h"
#include "tests/server/store/store_fixture.h"

namespace gannet {
namespace {

constexpr Now kNow{.monotonic_ns = 1, .wall_ms = 1'000'000};

class DispatcherTest : public testing::Test {
 protected:
  static RequestHeader Header(Opcode opcode, uint8_t flags = 0) {
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(opcode);
    header.flags = flags;
    header.sequence = 77;
    return header;
  }
  ReplyHeader Execute(const RequestHeader& header, std::string_view key = "",
                      std::string_view value = "") {
    const ReplyHeader reply = dispatcher_.Execute({header, key, value}, value_, kNow);
    EXPECT_EQ(reply.opcode, header.opcode);
    EXPECT_EQ(reply.sequence, 77u);
    return reply;
  }
  static ReplyStatus StatusOf(const ReplyHeader& reply) {
    return static_cast<ReplyStatus>(reply.status);
  }
  std::string ValueOf(const ReplyHeader& reply) const {
    return std::string(reinterpret_cast<const char*>(value_.data()), reply.value_bytes);
  }

  TestStore store_{8 << 20};
  Dispatcher dispatcher_{&*store_, [](const Now&) {
                           StatsReply stats{};
                           stats.rpcs = 5;
                           return stats;
                         }};
  std::array<std::byte, EagerValueBytesMax(0)> value_{};
};

TEST_F(DispatcherTest, PutGetDelete) {
  RequestHeader put = Header(Opcode::kPut);
  put.user_flags = 9;
  put.ttl_ms = 1;
  const ReplyHeader stored = Execute(put, "key", "value");
  EXPECT_EQ(StatusOf(stored), ReplyStatus::kOk);
  EXPECT_NE(stored.version, 0u);
  EXPECT_NE(stored.slot, 0u);

  const ReplyHeader found = Execute(Header(Opcode::kGet), "key");
  EXPECT_EQ(StatusOf(found), ReplyStatus::kOk);
  EXPECT_EQ(ValueOf(found), "value");
  EXPECT_EQ(found.version, stored.version);
  EXPECT_EQ(found.slot, stored.slot);
  EXPECT_EQ(found.user_flags, 9u);
  EXPECT_EQ(found.expiry_ms, kNow.wall_ms + 1);

  EXPECT_EQ(StatusOf(Execute(Header(Opcode::kDelete), "key")), ReplyStatus::kOk);
  const ReplyHeader missing = Execute(Header(Opcode::kGet), "key");
  EXPECT_EQ(StatusOf(missing), ReplyStatus::kNotFound);
  EXPECT_EQ(missing.value_bytes, 0u);
}

TEST_F(DispatcherTest, LongValueIsTooLargeForAReplyAndSaysHowLongItIs) {
  const std::string value(value_.size() + 1, 'v');
  ASSERT_EQ(store_.Put("key", value).status, ReplyStatus::kOk);
  const ReplyHeader reply = Execute(Header(Opcode::kGet), "key");
  EXPECT_EQ(StatusOf(reply), ReplyStatus::kBufferTooSmall);
  EXPECT_EQ(reply.value_bytes, value.size());
}

TEST_F(DispatcherTest, ConditionsReachTheStore) {
  const uint64_t version = Execute(Header(Opcode::kPut), "key", "1").version;
  const ReplyHeader exists = Execute(Header(Opcode::kPut, kOnlyIfAbsent), "key", "2");
  EXPECT_EQ(StatusOf(exists), ReplyStatus::kExists);
  EXPECT_EQ(exists.version, version);

  RequestHeader conditional = Header(Opcode::kPut, kOnlyIfVersion);
  conditional.expected_version = version + 1000;
  EXPECT_EQ(StatusOf(Execute(conditional, "key", "2")), ReplyStatus::kVersionMismatch);
  conditional.expected_version = version;
  EXPECT_EQ(StatusOf(Execute(conditional, "key", "2")), ReplyStatus::kOk);

  RequestHeader locked = Header(Opcode::kDelete, kOnlyIfVersion | kUnderLock);
  locked.lock_word = 0x1234;
  store_.LockWordOf("key") = 0x5678;
  const ReplyHeader lost = Execute(locked, "key");
  EXPECT_EQ(StatusOf(lost), ReplyStatus::kLockLost);
  EXPECT_EQ(lost.lock_word, 0x5678u);
}

TEST_F(DispatcherTest, StatsArePassedThrough) {
  const ReplyHeader reply = Execute(Header(Opcode::kStats));
  ASSERT_EQ(reply.value_bytes, sizeof(StatsReply));
  StatsReply stats;
  std::memcpy(&stats, value_.data(), sizeof(stats));
  EXPECT_EQ(stats.rpcs, 5u);
}

TEST_F(DispatcherTest, PingIsAnswered) {
  EXPECT_EQ(StatusOf(Execute(Header(Opcode::kPing))), ReplyStatus::kOk);
}

TEST(RepeatableTest, OnlyWhatChangesSomethingIsRemembered) {
  for (Opcode opcode : {Opcode::kGet, Opcode::kStats, Opcode::kPing, Opcode::kHeartbeat}) {
    EXPECT_TRUE(IsRepeatable(opcode));
  }
  for (Opcode opcode : {Opcode::kPut, Opcode::kDelete, Opcode::kLock, Opcode::kUnlock}) {
    EXPECT_FALSE(IsRepeatable(opcode));
  }
}

}  // namespace
}  // namespace gannet
