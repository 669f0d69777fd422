#include <string>

#include "gtest/gtest.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

class ResumeTest : public ServerTest {
 protected:
  void SetUp() override { StartServer(); }

  static RequestHeader InsertHeader(RawPeer* peer) {
    RequestHeader header = peer->Header(Opcode::kPut, kOnlyIfAbsent);
    header.key_bytes = 3;
    header.value_bytes = 5;
    return header;
  }
  bool WaitConnections(uint64_t count) {
    return StepUntil([this, count] { return stats().connections == count; });
  }
};

TEST_F(ResumeTest, RequestSentAgainAfterABreakIsAnsweredFromTheRecord) {
  std::optional<RawPeer> first(this);
  ASSERT_TRUE(first->Connect());
  const RequestHeader insert = InsertHeader(&*first);
  const auto answer = first->Call(insert, "key", "value");
  ASSERT_EQ(answer->status(), ReplyStatus::kOk);
  const Grant old = first->grant();
  RawPeer second(this);
  ConnectRequest request = NewConnectRequest();
  request.session_token = old.session_token;
  first.reset();
  ASSERT_TRUE(WaitConnections(0));
  EXPECT_EQ(stats().sessions, 1u) << "a session outlives its connection";

  ASSERT_TRUE(second.Connect(request));
  EXPECT_EQ(second.grant().resumed, 1);
  EXPECT_EQ(second.grant().session_id, old.session_id);
  EXPECT_GT(second.grant().connection_id, old.connection_id);
  const auto again = second.Call(insert, "key", "value");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->status(), ReplyStatus::kOk);
  EXPECT_EQ(again->header.write.version, answer->header.write.version);
}

TEST_F(ResumeTest, RequestThatNeverArrivedIsExecuted) {
  RawPeer first(this);
  ASSERT_TRUE(first.Connect());
  const RequestHeader insert = InsertHeader(&first);
  RawPeer second(this);
  ASSERT_TRUE(second.Join(first, 0));
  EXPECT_EQ(second.Call(insert, "key", "value")->status(), ReplyStatus::kOk);
}

TEST_F(ResumeTest, OldQueuePairIsBrokenBeforeItsSuccessorIsAccepted) {
  RawPeer first(this);
  ASSERT_TRUE(first.Connect());
  RawPeer second(this);
  ASSERT_TRUE(second.Join(first, 0));
  EXPECT_EQ(stats().connections, 1u);
  EXPECT_TRUE(first.WaitBroken());
  EXPECT_EQ(second.Put("key", "value"), ReplyStatus::kOk);
}

TEST_F(ResumeTest, QueuePairsOfASessionShareItsRecord) {
  RawPeer first(this);
  ASSERT_TRUE(first.Connect());
  RawPeer second(this);
  ASSERT_TRUE(second.Join(first, 1));
  EXPECT_EQ(stats().connections, 2u);
  EXPECT_EQ(stats().sessions, 1u);
  const RequestHeader insert = InsertHeader(&first);
  const auto answer = first.Call(insert, "key", "value");
  ASSERT_EQ(answer->status(), ReplyStatus::kOk);
  const auto again = second.Call(insert, "key", "value");
  EXPECT_EQ(again->status(), ReplyStatus::kOk);
  EXPECT_EQ(again->header.write.version, answer->header.write.version);
}

// The client believes that one of its connections is dead, and asks again on another while the
// server still works on the first copy. The server gives that one up, and executes the request
// once.
TEST_F(ResumeTest, RequestInProgressElsewhereIsExecutedOnce) {
  RawPeer first(this);
  ASSERT_TRUE(first.Connect());
  RawPeer second(this);
  ASSERT_TRUE(second.Join(first, 1));
  RequestHeader insert = first.Header(Opcode::kPut, kOnlyIfAbsent | kValueInBuffer);
  insert.key_bytes = 3;
  insert.value_bytes = 1 << 20;
  RequestHeader copy = insert;
  insert.write.buffer_address = first.lent().address();
  insert.write.buffer_rkey = first.lent().rkey();
  copy.write.buffer_address = second.lent().address();
  copy.write.buffer_rkey = second.lent().rkey();
  ASSERT_TRUE(first.Send(insert, "key"));
  ASSERT_TRUE(second.Send(copy, "key"));
  // This holds whether the first copy was done, under way, or not yet seen when the second arrived.
  EXPECT_EQ(second.Receive()->status(), ReplyStatus::kOk);
  EXPECT_EQ(stats().items, 1u);
}

TEST_F(ResumeTest, SessionIsForgottenAfterTheGracePeriod) {
  std::optional<RawPeer> first(this);
  ASSERT_TRUE(first->Connect());
  ConnectRequest request = NewConnectRequest();
  request.session_token = first->grant().session_token;
  first.reset();
  ASSERT_TRUE(WaitConnections(0));
  Advance(29 * kNsPerSecond);
  Step();
  EXPECT_EQ(stats().sessions, 1u);
  Advance(2 * kNsPerSecond);
  Step();
  EXPECT_EQ(stats().sessions, 0u);
  RawPeer second(this);
  EXPECT_FALSE(second.Connect(request));
  ASSERT_TRUE(second.reject().has_value());
  EXPECT_EQ(second.reject()->code, static_cast<uint32_t>(RejectCode::kSessionUnknown));
}

TEST_F(ResumeTest, SilentPeerIsTakenForDead) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Put("key", "value"), ReplyStatus::kOk);
  peer.FallSilent();
  Pass(int64_t{kSilenceMsDefault} * kNsPerMs - 500 * kNsPerMs);
  EXPECT_EQ(stats().connections, 1u);
  Pass(int64_t{kSilenceMsDefault} * kNsPerMs);
  EXPECT_TRUE(WaitConnections(0));
  EXPECT_EQ(stats().sessions, 1u) << "it may come back";
}

TEST_F(ResumeTest, HeartbeatsKeepAnIdlePeerAlive) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  for (int i = 0; i < 10; ++i) {
    Pass(int64_t{kSilenceMsDefault} * kNsPerMs / 3);
    ASSERT_TRUE(peer.Call(peer.Header(Opcode::kHeartbeat))) << i;
  }
  EXPECT_EQ(stats().connections, 1u);
}

TEST_F(ResumeTest, ManyReconnectsLeaveNothingBehind) {
  RawPeer first(this);
  ASSERT_TRUE(first.Connect());
  uint32_t last = first.grant().connection_id;
  for (int i = 0; i < 50; ++i) {
    RawPeer next(this);
    ASSERT_TRUE(next.Join(first, 1)) << i;
    ASSERT_GT(next.grant().connection_id, last) << "ids are never reused";
    last = next.grant().connection_id;
    ASSERT_EQ(next.Call(next.Header(Opcode::kPing))->status(), ReplyStatus::kOk);
    first.next_sequence = next.next_sequence;
  }
  ASSERT_TRUE(WaitConnections(1));
  EXPECT_EQ(stats().sessions, 1u);
}

}  // namespace
}  // namespace gannet
