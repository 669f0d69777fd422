// Peers that are alive and send requests, but take no replies.

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

constexpr uint32_t kSmallBytes = 1000, kStagedBytes = 4'040;  // needs a staging buffer

class TakingTest : public ServerTest {
 protected:
  void Start(uint32_t reply_buffers) {
    StartServer([=](Server::Options* options) { options->reply_buffers = reply_buffers; });
    ASSERT_TRUE(good_.emplace(this).Connect());
    ASSERT_EQ(good_->Put("small", std::string(kSmallBytes, 's')), ReplyStatus::kOk);
    RequestHeader put = LargeHeader(&*good_, Opcode::kPut);
    ASSERT_EQ(good_->Call(put, "large")->status(), ReplyStatus::kOk);
  }
  void TearDown() override {
    idle_.clear();
    good_.reset();
    ServerTest::TearDown();
  }
  static RequestHeader SmallGet(RawPeer* peer, std::string_view key = "small") {
    RequestHeader header = peer->Header(Opcode::kGet);
    header.key_bytes = static_cast<uint16_t>(key.size());
    return header;
  }
  static RequestHeader LargeHeader(RawPeer* peer, Opcode opcode) {
    RequestHeader header = peer->Header(opcode, kValueInBuffer);
    header.key_bytes = 5;
    if (opcode == Opcode::kGet) {
      header.get = {.buffer_address = peer->lent().address(),
                    .buffer_rkey = peer->lent().rkey(),
                    .buffer_bytes = kStagedBytes};
    } else {
      header.value_bytes = kStagedBytes;
      header.write.buffer_address = peer->lent().address();
      header.write.buffer_rkey = peer->lent().rkey();
    }
    return header;
  }
  // Adds a peer that takes no replies and has asked for small and large values.
  void AddIdlePeer(int small, int large) {
    RawPeer& peer = *idle_.emplace_back(std::make_unique<RawPeer>(this));
    peer.PostNoMoreReceives();
    ASSERT_TRUE(peer.Connect());
    peer.TakeSlowly();
    for (int i = 0; i < small; ++i) ASSERT_TRUE(peer.Send(SmallGet(&peer), "small"));
    ASSERT_TRUE(peer.WaitSent());
    Step();
    for (int i = 0; i < large; ++i) {
      ASSERT_TRUE(peer.Send(LargeHeader(&peer, Opcode::kGet), "large"));
    }
    ASSERT_TRUE(peer.WaitSent());
    Step();
  }
  static bool AnswersHeartbeat(const RawPeer::Reply& reply) {
    return reply.header.opcode == static_cast<uint8_t>(Opcode::kHeartbeat);
  }
  // All send heartbeats, and time goes on. The device works in real time: the server's clock stands
  // still until `good_` has the answer to its heartbeat.
  void LiveOn() {
    for (auto& peer : idle_) {
      if (!peer->broken()) peer->Send(peer->Header(Opcode::kHeartbeat));
    }
    ASSERT_TRUE(good_->Send(good_->Header(Opcode::kHeartbeat)));
    Pass(300 * kNsPerMs);
    ASSERT_TRUE(StepUntil([this] {
      auto reply = good_->TryReceive();
      if (!reply.has_value()) return false;
      if (AnswersHeartbeat(*reply)) return true;
      answers_.push_back(*std::move(reply));
      return false;
    }));
    for (auto& peer : idle_) peer->Poll();
  }
  // Returns the answer to `good_` while time goes on. Ignores answers to heartbeats.
  std::optional<RawPeer::Reply> ReceiveWhileTimePasses(int64_t ns_max) {
    for (int64_t ns = 0; ns <= ns_max; ns += 300 * kNsPerMs) {
      LiveOn();
      for (int i = 0; i < 20; ++i) {
        Step();
        while (auto reply = good_->TryReceive()) {
          if (!AnswersHeartbeat(*reply)) answers_.push_back(*std::move(reply));
        }
      }
      if (!answers_.empty()) return answers_.front();
    }
    return std::nullopt;
  }

  std::vector<RawPeer::Reply> answers_;  // to `good_`, but to no heartbeats
  std::optional<RawPeer> good_;
  std::vector<std::unique_ptr<RawPeer>> idle_;
};

TEST_F(TakingTest, PeersThatTakeNothingStopNoOne) {
  Start(/*reply_buffers=*/64);
  for (int i = 0; i < 8; ++i) AddIdlePeer(/*small=*/30, /*large=*/30);
  // At once:
  EXPECT_EQ(good_->Get("small"), std::string(kSmallBytes, 's'));
  EXPECT_EQ(good_->Call(good_->Header(Opcode::kStats))->status(), ReplyStatus::kOk);
  // Answered once the peers are cut off that hold all staging buffers:
  ASSERT_TRUE(good_->Send(LargeHeader(&*good_, Opcode::kGet), "large"));
  const auto large = ReceiveWhileTimePasses(2 * int64_t{kSilenceMsDefault} * kNsPerMs);
  ASSERT_TRUE(large.has_value());
  EXPECT_EQ(large->status(), ReplyStatus::kOk);
  EXPECT_EQ(large->header.value_bytes, kStagedBytes);
}

TEST_F(TakingTest, PeerThatLivesButTakesNoRepliesIsCutOff) {
  Start(/*reply_buffers=*/64);
  AddIdlePeer(/*small=*/1, /*large=*/0);
  AddIdlePeer(/*small=*/0, /*large=*/0);  // nothing but replies to its heartbeats
  for (int i = 0; i < 4; ++i) LiveOn();
  EXPECT_EQ(stats().connections, 3u) << "after 1.2 s";
  for (int i = 0; i < 6; ++i) LiveOn();
  EXPECT_TRUE(StepUntil([this] { return stats().connections == 1; }));
  EXPECT_EQ(good_->Get("small"), std::string(kSmallBytes, 's'));
}

TEST_F(TakingTest, PeerThatTakesItsRepliesIsNotHoweverFewTheyAre) {
  Start(/*reply_buffers=*/64);
  for (int i = 0; i < 40; ++i) {
    LiveOn();
  }
  EXPECT_EQ(stats().connections, 1u);
}

TEST_F(TakingTest, WhatHasNoValueNeedsNoBuffer) {
  Start(/*reply_buffers=*/1);
  AddIdlePeer(/*small=*/1, /*large=*/0);
  EXPECT_EQ(good_->Call(SmallGet(&*good_), "small")->status(), ReplyStatus::kTryAgain);
  EXPECT_EQ(good_->Call(SmallGet(&*good_, "other"), "other")->status(), ReplyStatus::kNotFound);
  const auto too_long = good_->Call(SmallGet(&*good_, "large"), "large");
  EXPECT_EQ(too_long->status(), ReplyStatus::kBufferTooSmall);
  EXPECT_EQ(too_long->header.value_bytes, kStagedBytes);
}

}  // namespace
}  // namespace gannet
