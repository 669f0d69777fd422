// Replies that wait for the disk, and go where their client is by then.

#include "server/rpc/waiting_replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using GivingUp = WaitingReplies::GivingUp;

constexpr uint64_t kToken = 7;
constexpr uint64_t kOther = 8;
constexpr uint64_t kNowMs = 1'000;
constexpr uint32_t kOpen = 99;
constexpr uint16_t kCredits = 2;

class WaitingRepliesTest : public testing::Test {
 protected:
  WaitingRepliesTest() { writes_.WaitFor(&recorder_); }
  // A session's write is decided, and its reply waits.
  void Write(uint64_t token, uint64_t sequence, uint32_t connection) {
    const auto decided =
        writes_.Put("key" + std::to_string(recorder_.end), "value", {}, {}, At(kNowMs));
    ASSERT_GT(decided.ticket, 0u);
    ReplyHeader reply{};
    reply.sequence = sequence;
    replies_.Add({.ticket = decided.ticket,
                  .session_token = token,
                  .connection = connection,
                  .reply = reply});
  }
  // All connections but kOpen are gone.
  GivingUp GiveUp(uint64_t token, std::vector<uint64_t> sequences) {
    return replies_.GiveUp(token, sequences, kCredits, [](uint32_t id) { return id == kOpen; });
  }
  // Takes all replies that may leave. Returns their connections.
  std::vector<uint32_t> Take() {
    std::vector<uint32_t> connections;
    for (; const auto* reply = replies_.First(&writes_, writes_.published()); replies_.Pop()) {
      connections.push_back(reply->connection);
    }
    return connections;
  }

  struct Recorder : ChangeRecorder {
    std::optional<ChangePlace> Reserve(const Change&) override { return ChangePlace{.end = ++end}; }
    std::optional<ChangePlace> ReserveUndo(const Change& deletion,
                                           std::span<const SessionRecord>) override {
      return Reserve(deletion);
    }
    void Fill(const Change&, const ChangePlace&) override {}
    bool BeginUpdates(UpdateLane*) override { return false; }
    void EndUpdates(UpdateLane*) override {}
    uint64_t end = 0;
  };
  Recorder recorder_;
  TestStore store_{1 << 20};
  Writes& writes_ = store_.writes();
  WaitingReplies replies_;
};

TEST_F(WaitingRepliesTest, LeaveInTheirOrderWhenTheirWritesArePublished) {
  Write(kToken, 1, 11);
  Write(kOther, 1, 12);
  Write(kToken, 2, 13);
  EXPECT_THAT(Take(), IsEmpty());
  writes_.Publish(2);
  EXPECT_THAT(Take(), ElementsAre(11, 12));
  writes_.Publish(3);
  EXPECT_THAT(Take(), ElementsAre(13));
  EXPECT_EQ(replies_.size(), 0u);
}

TEST_F(WaitingRepliesTest, FollowTheirClientToAnotherConnection) {
  Write(kToken, 1, 11);
  Write(kToken, 2, 11);
  Write(kOther, 2, 12);
  EXPECT_EQ(replies_.Redirect(kToken, 2, 21), 11u);
  EXPECT_EQ(replies_.Redirect(kToken, 2, 31), 21u) << "again, elsewhere";
  writes_.Publish(recorder_.end);
  EXPECT_THAT(Take(), ElementsAre(11, 31, 12));
}

TEST_F(WaitingRepliesTest, OnlyAWaitingReplyOfTheSameSessionAndNumberIsRedirected) {
  Write(kToken, 1, 11);
  EXPECT_EQ(replies_.Redirect(kOther, 1, 21), std::nullopt);
  EXPECT_EQ(replies_.Redirect(kToken, 2, 21), std::nullopt);
  writes_.Publish(recorder_.end);
  EXPECT_THAT(Take(), ElementsAre(11));
  EXPECT_EQ(replies_.Redirect(kToken, 1, 21), std::nullopt) << "it has left";
}

TEST_F(WaitingRepliesTest, OneThatIsGivenUpKeepsItsPlace) {
  Write(kToken, 1, 11);
  Write(kToken, 2, 12);
  EXPECT_EQ(GiveUp(kToken, {1}), GivingUp::kDone);
  EXPECT_EQ(GiveUp(kToken, {1}), GivingUp::kNotHeld) << "it is over";
  EXPECT_EQ(replies_.Redirect(kToken, 1, 21), std::nullopt);
  writes_.Publish(recorder_.end);
  EXPECT_EQ(replies_.First(&writes_, writes_.published())->sequence, 0u);
  EXPECT_THAT(Take(), ElementsAre(11, 12));
}

TEST_F(WaitingRepliesTest, WhatSomebodyMayHearOfIsNotGivenUp) {
  Write(kToken, 1, 11);
  Write(kToken, 2, kOpen);
  EXPECT_EQ(GiveUp(kToken, {1, 2}), GivingUp::kNotHeld) << "one connection is open";
  EXPECT_EQ(GiveUp(kToken, {1, 3}), GivingUp::kNotHeld) << "the reply to one does not wait";
  EXPECT_EQ(GiveUp(kOther, {1}), GivingUp::kNotHeld) << "it is another session's";
  EXPECT_EQ(replies_.Redirect(kToken, 1, 21), 11u) << "nothing was given up";
}

// Whoever loses one connection after the other, and gives up what was sent on each.
TEST_F(WaitingRepliesTest, ASessionHasABoundOfWhatItGaveUp) {
  uint64_t sequence = 0;
  for (size_t n = 0; n < WaitingReplies::kGivenUpPerCredit * kCredits; ++n) {
    Write(kToken, ++sequence, 11);
    Write(kOther, sequence, 12);
    ASSERT_EQ(GiveUp(kToken, {sequence}), GivingUp::kDone);
  }
  Write(kToken, ++sequence, 11);
  EXPECT_EQ(GiveUp(kToken, {sequence}), GivingUp::kTooMany);
  EXPECT_EQ(GiveUp(kOther, {1}), GivingUp::kDone) << "other sessions have their own";
  writes_.Publish(2);
  Take();
  EXPECT_EQ(GiveUp(kToken, {sequence}), GivingUp::kDone) << "one of them has left";
}

}  // namespace
}  // namespace gannet
