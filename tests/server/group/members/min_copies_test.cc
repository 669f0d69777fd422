// A primary whose group wants two copies, while they are missing.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/group/members/group_fixture.h"

namespace gannet {
namespace {

// A primary that hears nobody removes its last backup after some three leases.
constexpr int64_t kRemovalNs = 5 * GroupPutTest::kLeaseNs;
constexpr uint64_t kTtlMs = 1'000'000;

class MinCopiesTest : public GroupPutTest {
 protected:
  explicit MinCopiesTest(GroupTerms terms = {.lease_ms = kLeaseMs, .min_copies = 2})
      : GroupPutTest(std::move(terms)) {}

  void Start() {
    StartGroup(1);
    if (!HasFatalFailure()) server().store().UseClock(&clock());
  }
  static RequestHeader Write(RawPeer& peer, const std::string& key, const std::string& value,
                             uint8_t flags = 0, uint64_t ttl_ms = 0) {
    RequestHeader header = peer.Header(Opcode::kPut, flags);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = static_cast<uint32_t>(value.size());
    header.write.ttl_ms = ttl_ms;
    return header;
  }
  // The backup lives, and gets what is written, but says nothing any more. So nothing is committed.
  void SilenceBackup() {
    FollowApart();
    SkipLeaseTime(kLeaseNs + kNsPerSecond);
  }
  // Until its removal is known, nobody answers for it.
  void RemoveBackup() {
    SkipLeaseTime(kRemovalNs);
    ASSERT_EQ(shared().now().configuration.in_sync.size(), 1u);
  }
  // Another process comes in its place.
  void JoinAgain() {
    LoseBackup(0);
    FollowAgain();
    StartBackup(1);
    EXPECT_TRUE(StepUntil([&] { return shared().now().configuration.in_sync.size() == 2; }))
        << "no copies any more";
  }
  std::optional<RawPeer::Reply> Await(RawPeer& peer) {
    std::optional<RawPeer::Reply> reply;
    StepUntil([&] {
      peer.Poll();
      reply = peer.TryReceive();
      return reply.has_value() || peer.broken();
    });
    return reply;
  }
  // The register says who is in sync before the primary knows.
  ReplyStatus PutOnceTaken(RawPeer& peer, const std::string& key, const std::string& value) {
    ReplyStatus status = ReplyStatus::kTooFewCopies;
    StepUntil([&] {
      status = peer.Put(key, value);
      return status != ReplyStatus::kTooFewCopies;
    });
    return status;
  }
  bool Has(const std::string& key, const std::string& value) {
    std::string copy(value.size(), '\0');
    const ReadOutcome read =
        server().store().Get(key, std::as_writable_bytes(std::span(copy)), now().server_time);
    return read.status == ReplyStatus::kOk && copy == value;
  }
};

// It is undone, by a deletion in the stream. If that waited for copies, no joiner could begin.
TEST_F(MinCopiesTest, AWriteThatCountsOnWhatExpiredKeepsNobodyFromJoining) {
  Start();
  ASSERT_FALSE(HasFatalFailure());
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Call(Write(peer, "brief", "1", 0, kTtlMs), "brief", "1")->status(),
            ReplyStatus::kOk);
  SilenceBackup();
  ASSERT_TRUE(peer.Send(Write(peer, "brief", "2", kOnlyIfPresent), "brief", "2"));
  ASSERT_TRUE(StepUntil([&] { return server().workers()[0]->holds_replies(); }));
  clock().GoOnFrom(clock().Time() + 2 * kTtlMs);
  RemoveBackup();
  const auto reply = Await(peer);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status(), ReplyStatus::kTryAgain);
  EXPECT_EQ(peer.Put("other", "x"), ReplyStatus::kTooFewCopies);
  JoinAgain();
  EXPECT_EQ(PutOnceTaken(peer, "other", "x"), ReplyStatus::kOk);
}

TEST_F(MinCopiesTest, WhatIsCommittedWithoutCopiesIsPublishedAndNotAcknowledged) {
  Start();
  ASSERT_FALSE(HasFatalFailure());
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Put("there", "1"), ReplyStatus::kOk);
  SilenceBackup();
  // An update, which has a fast path, and a write of another kind.
  const RequestHeader update = Write(peer, "there", "2");
  const RequestHeader other = Write(peer, "new", "3");
  ASSERT_TRUE(peer.Send(update, "there", "2"));
  ASSERT_TRUE(peer.Send(other, "new", "3"));
  ASSERT_TRUE(StepUntil([&] { return server().workers()[0]->holds_replies(); }));
  for (int i = 0; i < 20; ++i) Step();
  ASSERT_FALSE(peer.TryReceive().has_value()) << "nothing is committed";
  RemoveBackup();
  for (const RequestHeader& request : {update, other}) {
    const auto reply = Await(peer);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->header.sequence, request.sequence);
    EXPECT_EQ(reply->status(), ReplyStatus::kOutcomeUnknown);
    EXPECT_EQ(reply->header.write.version, 0u);
  }
  EXPECT_TRUE(Has("there", "2"));
  EXPECT_TRUE(Has("new", "3"));
  // The session remembers what it said.
  EXPECT_EQ(peer.Call(update, "there", "2")->status(), ReplyStatus::kOutcomeUnknown);
  JoinAgain();
  EXPECT_EQ(peer.Call(other, "new", "3")->status(), ReplyStatus::kOutcomeUnknown);
  EXPECT_EQ(PutOnceTaken(peer, "there", "4"), ReplyStatus::kOk) << "what was before is over";
}

// Its copy does not count from when the transaction is sent that takes it out.
TEST_F(MinCopiesTest, ABackupWhoseRemovalIsUnknownIsNoCopy) {
  Start();
  ASSERT_FALSE(HasFatalFailure());
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  SilenceBackup();
  shared().SetAway(true);
  SkipLeaseTime(kRemovalNs);
  EXPECT_EQ(peer.Put("key", "value"), ReplyStatus::kTooFewCopies);
  EXPECT_FALSE(Has("key", "value"));
}

// The register is the first to know that it has left, and the primary learns of it late.
TEST_F(MinCopiesTest, ABackupLeavesOnceThePrimaryDoesNotCommitWithIt) {
  Start();
  ASSERT_FALSE(HasFatalFailure());
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const auto in_sync = [this] { return shared().now().configuration.in_sync.size(); };
  shared().SetWatchesLate();
  FollowApart();
  backup(0).member()->Leave();
  backup(0).member()->Poll(lease_now());
  ASSERT_EQ(in_sync(), 2u) << "the primary may commit";
  EXPECT_EQ(peer.Put("key", "1"), ReplyStatus::kOk);
  FollowAgain();
  for (int i = 0; i < 2 && in_sync() > 1; ++i) SkipLeaseTime(kLeaseNs);
  ASSERT_EQ(in_sync(), 1u);
  ASSERT_TRUE(peer.Send(Write(peer, "key", "2"), "key", "2"));
  for (int i = 0; i < 20; ++i) Step();
  ASSERT_FALSE(peer.TryReceive().has_value()) << "nobody but the primary has it";
  SkipLeaseTime(kRemovalNs);
  const auto reply = Await(peer);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status(), ReplyStatus::kOutcomeUnknown);
  EXPECT_TRUE(Has("key", "2"));
}

// It would take the status for a bug of the server. Without its session it says the same by itself.
TEST_F(MinCopiesTest, AnOlderClientsSessionIsEnded) {
  Start();
  ASSERT_FALSE(HasFatalFailure());
  ConnectRequest request = NewConnectRequest();
  request.version_min = request.version_max = kProtocolVersionOfOutcomeUnknown - 1;
  RawPeer peer(this);
  RawPeer second(this);
  ASSERT_TRUE(peer.Connect(request));
  EXPECT_EQ(peer.grant().version, kProtocolVersionOfOutcomeUnknown - 1);
  ConnectRequest join = request;
  join.session_token = peer.grant().session_token;
  join.qp_index = 1;
  ASSERT_TRUE(second.Connect(join));
  ASSERT_EQ(peer.Put("key", "1"), ReplyStatus::kOk);
  SilenceBackup();
  ASSERT_TRUE(peer.Send(Write(peer, "key", "2"), "key", "2"));
  ASSERT_TRUE(StepUntil([&] { return server().workers()[0]->holds_replies(); }));
  RemoveBackup();
  EXPECT_TRUE(peer.WaitBroken());
  EXPECT_TRUE(second.WaitBroken()) << "it could send the write again there";
  EXPECT_FALSE(peer.TryReceive().has_value());
  EXPECT_TRUE(Has("key", "2"));
  RawPeer again(this);
  EXPECT_FALSE(again.Connect(join));
  ASSERT_TRUE(again.reject().has_value());
  EXPECT_EQ(again.reject()->code, static_cast<uint32_t>(RejectCode::kSessionUnknown));
  RawPeer anew(this);
  EXPECT_TRUE(anew.Connect(request));
}

class FullRingTest : public MinCopiesTest {
 protected:
  FullRingTest() : MinCopiesTest({.lease_ms = kLeaseMs, .ring_bytes = 1 << 20}) {}
};

// What waits behind a write that is to be undone keeps the ring full until it is published.
TEST_F(FullRingTest, AnUndoDoesNotWaitForRoom) {
  // They take so much of the ring that no part of a long value has room behind them.
  constexpr int kPeers = 28;
  constexpr int kUpdates = 30;  // of each, fewer than its credits
  constexpr int kLongPuts = 3;
  const std::string value(940, 'v');
  Start();
  ASSERT_FALSE(HasFatalFailure());
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < kPeers; ++i) {
    peers.push_back(std::make_unique<RawPeer>(this));
    ASSERT_TRUE(peers.back()->Connect());
    for (int j = 0; j < kUpdates; ++j) {
      ASSERT_EQ(peers.back()->Put(Key(i * kUpdates + j), value), ReplyStatus::kOk);
    }
  }
  RawPeer& peer = *peers.front();
  ASSERT_EQ(peer.Call(Write(peer, "brief", "1", 0, kTtlMs), "brief", "1")->status(),
            ReplyStatus::kOk);
  SilenceBackup();
  RawPeer last(this);
  ASSERT_TRUE(last.Connect());
  ASSERT_TRUE(last.Send(Write(last, "brief", "2", kOnlyIfPresent), "brief", "2"));
  ASSERT_TRUE(StepUntil([&] { return server().workers()[0]->holds_replies(); }));
  for (int i = 0; i < kPeers; ++i) {
    for (int j = 0; j < kUpdates; ++j) {
      const std::string key = Key(i * kUpdates + j);
      ASSERT_TRUE(peers[i]->Send(Write(*peers[i], key, value), key, value));
    }
    ASSERT_TRUE(peers[i]->WaitSent());
    Step();
  }
  for (int i = 0; i < kLongPuts; ++i) {
    RequestHeader header = last.Header(Opcode::kPut, kValueInBuffer);
    header.key_bytes = 5;
    header.value_bytes = 2 << 20;
    header.write.buffer_rkey = last.lent().rkey();
    header.write.buffer_address = last.lent().address();
    ASSERT_TRUE(last.Send(header, "long" + std::to_string(i)));
  }
  constexpr uint64_t kCrowded = 4 << 20;
  ASSERT_TRUE(StepUntil([&] { return primary().waiting_bytes > kCrowded; }));
  clock().GoOnFrom(clock().Time() + 2 * kTtlMs);
  RemoveBackup();
  EXPECT_TRUE(StepUntil([&] { return !server().workers()[0]->holds_replies(); }));
}

}  // namespace
}  // namespace gannet
