// Writes of a key that come behind one that was put off, in the same session, are put off, too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

// A journal that is behind whenever the test wants.
class SlowJournal : public ChangeConsumer {
 public:
  bool Take(const Change&, ChangePlace*) override { return !behind; }
  Takes takes() const override { return behind ? Takes::kLater : Takes::kNow; }

  bool behind = false;
};

class PutOffTest : public ServerTest {
 protected:
  static constexpr uint16_t kCredits = 8;

  void SetUp() override {
    StartServer([](Server::Options* options) { options->credits = kCredits; });
    server().AddConsumer(&journal_, ChangeStream::Need::kHears);
    ASSERT_TRUE(peer_.emplace(this).Connect());
  }
  void TearDown() override {
    peer_.reset();
    ServerTest::TearDown();
  }
  ReplyHeader Put(std::string_view key, std::string_view value, uint8_t flags = 0) {
    RequestHeader header = peer_->Header(Opcode::kPut, flags);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = static_cast<uint32_t>(value.size());
    const std::optional<RawPeer::Reply> reply = peer_->Call(header, key, value);
    EXPECT_TRUE(reply.has_value());
    return reply.has_value() ? reply->header : ReplyHeader{};
  }
  static bool IsPutOff(const ReplyHeader& reply) {
    return reply.status == static_cast<uint8_t>(ReplyStatus::kTryAgain) &&
           reply.write.version == kPutOffInOrder;
  }
  static bool IsOk(const ReplyHeader& reply) {
    return reply.status == static_cast<uint8_t>(ReplyStatus::kOk);
  }
  // The item is there, so later PUTs are updates in place, and take the fast path if they may.
  void PutOffOneOf(std::string_view key) {
    ASSERT_TRUE(IsOk(Put(key, "0")));
    journal_.behind = true;
    ASSERT_TRUE(IsPutOff(Put(key, "1")));
    journal_.behind = false;
  }

  SlowJournal journal_;
  std::optional<RawPeer> peer_;
};

TEST_F(PutOffTest, LaterWritesOfTheKeyWaitForTheFirst) {
  PutOffOneOf("key");
  EXPECT_TRUE(IsPutOff(Put("key", "2")));
  EXPECT_TRUE(IsOk(Put("other", "2"))) << "another key";
  EXPECT_TRUE(IsPutOff(Put("key", "3")));
  EXPECT_EQ(peer_->Get("key"), "0");
  EXPECT_TRUE(IsOk(Put("key", "1", kSentAgain)));
  EXPECT_TRUE(IsOk(Put("key", "2")));
  EXPECT_TRUE(IsOk(Put("key", "3")));
  EXPECT_EQ(peer_->Get("key"), "3");
}

TEST_F(PutOffTest, ItMayBePutOffAgain) {
  PutOffOneOf("key");
  journal_.behind = true;
  EXPECT_TRUE(IsPutOff(Put("key", "1", kSentAgain)));
  journal_.behind = false;
  EXPECT_TRUE(IsPutOff(Put("key", "2")));
  EXPECT_TRUE(IsOk(Put("key", "1", kSentAgain)));
  EXPECT_EQ(peer_->Get("key"), "1");
}

TEST_F(PutOffTest, OtherSessionsDoNotWait) {
  PutOffOneOf("key");
  RawPeer other(this);
  ASSERT_TRUE(other.Connect());
  EXPECT_EQ(other.Put("key", "2"), ReplyStatus::kOk);
}

// What a client sends then, it sends after it was told. A client that gave up does not wait for
// ever.
TEST_F(PutOffTest, IsForgottenAfterAsManyRequestsAsThereAreCredits) {
  PutOffOneOf("key");
  for (int i = 1; i < kCredits; ++i) ASSERT_TRUE(IsOk(Put("other", "2"))) << i;
  EXPECT_TRUE(IsOk(Put("key", "2")));
}

// The client gave the first one up. Of the second one it is told as late as of the first.
TEST_F(PutOffTest, WhatIsPutOffBehindAnotherHoldsLaterOnesBack) {
  PutOffOneOf("key");
  for (int i = 2; i < kCredits; ++i) ASSERT_TRUE(IsOk(Put("other", "2"))) << i;
  EXPECT_TRUE(IsPutOff(Put("key", "2")));
  EXPECT_TRUE(IsPutOff(Put("key", "3"))) << "sent before the client was told of the second one";
  EXPECT_TRUE(IsOk(Put("key", "2", kSentAgain)));
  EXPECT_TRUE(IsOk(Put("key", "3")));
  EXPECT_EQ(peer_->Get("key"), "3");
}

TEST_F(PutOffTest, HoldsOverTheSessionsNextConnection) {
  PutOffOneOf("key");
  RawPeer next(this);
  ASSERT_TRUE(next.Join(*peer_, 0));
  RequestHeader header = next.Header(Opcode::kPut);
  header.sequence = peer_->Header(Opcode::kPut).sequence;
  header.key_bytes = 3;
  header.value_bytes = 1;
  const std::optional<RawPeer::Reply> reply = next.Call(header, "key", "2");
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(IsPutOff(reply->header));
}

}  // namespace
}  // namespace gannet
