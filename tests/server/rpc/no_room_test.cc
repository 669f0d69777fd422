// A server that evicts, in whose full memory nothing may go at the moment: values lie in it that
// are being brought. It puts off each kind of write that would fit without them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

// A disk, as far as writes see it.
class Disk : public ChangeConsumer {
 public:
  bool Take(const Change&, ChangePlace*) override { return state == Takes::kNow; }
  Takes takes() const override { return state; }

  Takes state = Takes::kNow;
};

class NoRoomTest : public ServerTest {
 protected:
  static constexpr uint32_t kLong = 100'000;

  void SetUp() override {
    StartServer([](Server::Options* options) { options->evict = true; });
    ASSERT_TRUE(peer_.emplace(this).Connect());
  }
  void TearDown() override {
    peer_.reset();
    ServerTest::TearDown();
  }

  void TakeAllRoom() {
    for (const uint32_t bytes : {1'000'000, 40'000, 4'000, 1'000, 200, 64}) {
      while (const auto value = server().store().Reserve("brought", bytes, now().server_time)) {
        brought_.push_back(*value);
      }
    }
  }
  void GiveRoom() {
    for (const Reservation& value : brought_) server().store().Abandon(value);
    brought_.clear();
  }
  ReplyHeader Call(RequestHeader header, std::string_view key, std::string_view value) {
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = static_cast<uint32_t>(value.size());
    const std::optional<RawPeer::Reply> reply = peer_->Call(header, key, value);
    EXPECT_TRUE(reply.has_value());
    return reply.has_value() ? reply->header : ReplyHeader{};
  }
  ReplyHeader Write(Opcode opcode, std::string_view key, std::string_view value,
                    uint8_t flags = 0) {
    return Call(peer_->Header(opcode, flags), key, value);
  }
  // Its value is in the client's memory.
  ReplyStatus PutLong(std::string_view key, uint32_t bytes) {
    RequestHeader header = peer_->Header(Opcode::kPut, kValueInBuffer);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = bytes;
    header.write.buffer_address = peer_->lent().address();
    header.write.buffer_rkey = peer_->lent().rkey();
    return peer_->Call(header, key)->status();
  }
  static ReplyStatus StatusOf(const ReplyHeader& reply) {
    return static_cast<ReplyStatus>(reply.status);
  }
  static bool IsPutOffInOrder(const ReplyHeader& reply) {
    return StatusOf(reply) == ReplyStatus::kTryAgain && reply.write.version == kPutOffInOrder;
  }

  Disk disk_;
  std::optional<RawPeer> peer_;
  std::vector<Reservation> brought_;
};

TEST_F(NoRoomTest, EachKindOfWriteIsPutOffAndKeepsItsOrder) {
  const std::string value(500, 'v');
  TakeAllRoom();
  EXPECT_TRUE(IsPutOffInOrder(Write(Opcode::kPut, "put", value)));
  EXPECT_TRUE(IsPutOffInOrder(Write(Opcode::kAppend, "append", value)));
  EXPECT_TRUE(IsPutOffInOrder(Write(Opcode::kPrepend, "prepend", value)));
  const CounterOperands operands{.delta = 1, .initial = 5};
  const std::string_view counter(reinterpret_cast<const char*>(&operands), sizeof(operands));
  EXPECT_TRUE(IsPutOffInOrder(Write(Opcode::kIncrement, "counter", counter)));
  EXPECT_EQ(PutLong("long", kLong), ReplyStatus::kTryAgain);
  EXPECT_EQ(stats().refused_heap_full, 0u);
  GiveRoom();
  EXPECT_TRUE(IsPutOffInOrder(Write(Opcode::kPut, "put", "later"))) << "it would be overtaken";
  EXPECT_EQ(StatusOf(Write(Opcode::kPut, "put", value, kSentAgain)), ReplyStatus::kOk);
  EXPECT_EQ(StatusOf(Write(Opcode::kPut, "put", "later")), ReplyStatus::kOk);
  EXPECT_EQ(PutLong("long", kLong), ReplyStatus::kOk);
  EXPECT_EQ(peer_->Get("put"), "later");
}

TEST_F(NoRoomTest, AValueThatNeverFitsIsRefused) {
  StopServer();
  StartServer([](Server::Options* options) {
    options->evict = true;
    options->memory_bytes = 2 << 20;
  });
  ASSERT_TRUE(peer_.emplace(this).Connect());
  EXPECT_EQ(PutLong("long", 2 << 20), ReplyStatus::kHeapFull);
  EXPECT_EQ(stats().refused_heap_full, 1u);
}

// Evictions that cannot be recorded make no room.
TEST_F(NoRoomTest, WhileTheDiskTakesNothingTheClientIsToldThat) {
  server().AddConsumer(&disk_, ChangeStream::Need::kHears);
  TakeAllRoom();
  EXPECT_TRUE(IsPutOffInOrder(Write(Opcode::kPut, "put", "value")));
  EXPECT_EQ(PutLong("long", kLong), ReplyStatus::kTryAgain);
  disk_.state = ChangeConsumer::Takes::kNot;
  EXPECT_EQ(StatusOf(Write(Opcode::kPut, "other", "value")), ReplyStatus::kDiskRefuses);
  EXPECT_EQ(PutLong("long", kLong), ReplyStatus::kDiskRefuses);
  disk_.state = ChangeConsumer::Takes::kTooFewCopies;
  EXPECT_EQ(StatusOf(Write(Opcode::kPut, "third", "value")), ReplyStatus::kTooFewCopies);
  EXPECT_EQ(PutLong("long", kLong), ReplyStatus::kTooFewCopies);
  GiveRoom();
}

}  // namespace
}  // namespace gannet
