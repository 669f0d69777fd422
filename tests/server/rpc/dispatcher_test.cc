#include "server/rpc/dispatcher.h"

#include <array>
#include <string>

#include "gtest/gtest.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

constexpr Now kNow{.boot = BootTime::FromNs(1), .server_time = At(1'000'000)};

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
    const RequestView request{header, key, value};
    const ReplyHeader reply = IsRepeatable(static_cast<Opcode>(header.opcode))
                                  ? dispatcher_.Read(request, value_, kNow)
                                  : dispatcher_.Write(request, kNow, nullptr).reply;
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
  Dispatcher dispatcher_{&*store_, &store_.writes()};
  std::array<std::byte, EagerValueBytesMax(0)> value_{};
};

TEST_F(DispatcherTest, PutGetDelete) {
  RequestHeader put = Header(Opcode::kPut);
  put.write.user_flags = 9;
  put.write.ttl_ms = 1;
  const ReplyHeader stored = Execute(put, "key", "value");
  EXPECT_EQ(StatusOf(stored), ReplyStatus::kOk);
  EXPECT_NE(stored.write.version, 0u);
  EXPECT_NE(stored.write.slot, 0u);

  const ReplyHeader found = Execute(Header(Opcode::kGet), "key");
  EXPECT_EQ(StatusOf(found), ReplyStatus::kOk);
  EXPECT_EQ(ValueOf(found), "value");
  EXPECT_EQ(found.get.version, stored.write.version);
  EXPECT_EQ(found.get.slot, stored.write.slot);
  EXPECT_EQ(found.get.user_flags, 9u);
  EXPECT_EQ(found.get.expiry_ms, kNow.server_time.ms() + 1);

  EXPECT_EQ(StatusOf(Execute(Header(Opcode::kDelete), "key")), ReplyStatus::kOk);
  const ReplyHeader missing = Execute(Header(Opcode::kGet), "key");
  EXPECT_EQ(StatusOf(missing), ReplyStatus::kNotFound);
  EXPECT_EQ(missing.value_bytes, 0u);
}

// The time of the Poll in which a request is served may be long before it came.
TEST_F(DispatcherTest, TimesToLiveCountFromTheClockNotFromTheBeginOfThePoll) {
  const uint64_t clock_ms = kNow.server_time.ms() + 46;
  const SetClock clock(clock_ms);
  store_->UseClock(&clock);
  const CounterOperands operands{.delta = 1, .initial = 5};
  const std::string_view number(reinterpret_cast<const char*>(&operands), sizeof(operands));
  for (const Opcode opcode : {Opcode::kPut, Opcode::kTouch, Opcode::kAppend, Opcode::kIncrement}) {
    RequestHeader header = Header(opcode);
    header.write.ttl_ms = 100;
    const std::string key = std::to_string(header.opcode);
    const bool touch = opcode == Opcode::kTouch;
    if (touch) {
      ASSERT_EQ(store_.Put(key, "1").status, ReplyStatus::kOk);
    }
    ASSERT_EQ(StatusOf(Execute(header, key, touch ? "" : number)), ReplyStatus::kOk);
    EXPECT_EQ(Execute(Header(Opcode::kGet), key).get.expiry_ms, clock_ms + 100) << header.opcode;
  }
}

TEST_F(DispatcherTest, LongValueIsTooLargeForAReplyAndSaysHowLongItIs) {
  const std::string value(value_.size() + 1, 'v');
  ASSERT_EQ(store_.Put("key", value).status, ReplyStatus::kOk);
  const ReplyHeader reply = Execute(Header(Opcode::kGet), "key");
  EXPECT_EQ(StatusOf(reply), ReplyStatus::kBufferTooSmall);
  EXPECT_EQ(reply.value_bytes, value.size());
}

TEST_F(DispatcherTest, AnIncrementTellsTheNewNumber) {
  const CounterOperands operands{.delta = -7, .initial = 5};
  const std::string_view value(reinterpret_cast<const char*>(&operands), sizeof(operands));
  RequestHeader increment = Header(Opcode::kIncrement);
  increment.write.user_flags = 3;
  increment.write.ttl_ms = 10;
  const ReplyHeader counted = Execute(increment, "n", value);
  EXPECT_EQ(counted.increment.number, -2);
  EXPECT_NE(counted.increment.slot, 0u);
  const ReplyHeader found = Execute(Header(Opcode::kGet), "n");
  EXPECT_EQ(ValueOf(found), "-2");
  EXPECT_EQ(found.get.user_flags, 3u);
  EXPECT_EQ(found.get.expiry_ms, kNow.server_time.ms() + 10);
  EXPECT_EQ(found.get.version, counted.increment.version);
}

// The number is one only if the increment was done.
TEST_F(DispatcherTest, AnIncrementThatIsRefusedTellsNoNumber) {
  const CounterOperands operands{.delta = 1, .initial = 5};
  const std::string_view value(reinterpret_cast<const char*>(&operands), sizeof(operands));
  RequestHeader increment = Header(Opcode::kIncrement, kOnlyIfVersion | kUnderLock);
  increment.write.lock_word = 0x1234;
  store_.LockWordOf("n") = 0x5678;
  const ReplyHeader lost = Execute(increment, "n", value);
  EXPECT_EQ(StatusOf(lost), ReplyStatus::kLockLost);
  EXPECT_EQ(lost.increment.number, 0);
}

TEST_F(DispatcherTest, AppendPrependAndTouchReachTheStore) {
  Execute(Header(Opcode::kAppend), "key", "b");
  Execute(Header(Opcode::kAppend), "key", "c");
  Execute(Header(Opcode::kPrepend), "key", "a");
  RequestHeader touch = Header(Opcode::kTouch);
  touch.write.ttl_ms = 20;
  const ReplyHeader touched = Execute(touch, "key");
  EXPECT_EQ(touched.value_bytes, 0u);
  const ReplyHeader found = Execute(Header(Opcode::kGet), "key");
  EXPECT_EQ(ValueOf(found), "abc");
  EXPECT_EQ(found.get.version, touched.write.version);
  EXPECT_EQ(found.get.expiry_ms, kNow.server_time.ms() + 20);
  EXPECT_EQ(StatusOf(Execute(touch, "absent")), ReplyStatus::kNotFound);
  EXPECT_EQ(StatusOf(Execute(Header(Opcode::kAppend, kOnlyIfPresent), "absent", "x")),
            ReplyStatus::kNotFound);
}

TEST_F(DispatcherTest, AStepOfAFlushTellsWhereToGoOnAndHowManyItRemoved) {
  for (int i = 0; i < 1000; ++i) store_.Put("key" + std::to_string(i), "v");
  RequestHeader flush = Header(Opcode::kFlush);
  uint64_t removed = 0;
  do {
    const ReplyHeader reply = Execute(flush);
    EXPECT_EQ(StatusOf(reply), ReplyStatus::kOk);
    removed += reply.flush.removed;
    flush.flush.position = reply.flush.next;
  } while (flush.flush.position != 0);
  EXPECT_EQ(removed, 1000u);
  EXPECT_EQ(store_.Stats().items, 0u);
}

TEST_F(DispatcherTest, ConditionsReachTheStore) {
  const uint64_t version = Execute(Header(Opcode::kPut), "key", "1").write.version;
  const ReplyHeader exists = Execute(Header(Opcode::kPut, kOnlyIfAbsent), "key", "2");
  EXPECT_EQ(StatusOf(exists), ReplyStatus::kExists);
  EXPECT_EQ(exists.write.version, version);

  RequestHeader conditional = Header(Opcode::kPut, kOnlyIfVersion);
  conditional.write.expected_version = version + 1000;
  EXPECT_EQ(StatusOf(Execute(conditional, "key", "2")), ReplyStatus::kVersionMismatch);
  conditional.write.expected_version = version;
  EXPECT_EQ(StatusOf(Execute(conditional, "key", "2")), ReplyStatus::kOk);

  RequestHeader locked = Header(Opcode::kDelete, kOnlyIfVersion | kUnderLock);
  locked.write.lock_word = 0x1234;
  store_.LockWordOf("key") = 0x5678;
  const ReplyHeader lost = Execute(locked, "key");
  EXPECT_EQ(StatusOf(lost), ReplyStatus::kLockLost);
  EXPECT_EQ(lost.write.lock_word, 0x5678u);
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
