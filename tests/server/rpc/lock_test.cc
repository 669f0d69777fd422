#include <string>

#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "gtest/gtest.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

constexpr char kKey[] = "key";

KeyHash HashOf(const RawPeer& peer) { return KeyHash::Of(kKey, peer.grant().hash_seed); }

size_t IndexOf(const RawPeer& peer) { return HashOf(peer).LockIndex(peer.grant().lock_words); }

uint64_t WordOf(const RawPeer& peer, uint32_t count) {
  return LockWord::Of(peer.grant().connection_id, count, HashOf(peer).LockTag()).word();
}

RequestHeader LockHeader(RawPeer* peer, Opcode opcode, uint64_t word) {
  RequestHeader header = peer->Header(opcode);
  header.key_bytes = sizeof(kKey) - 1;
  header.lock.lock_word = word;
  return header;
}

RawPeer::Reply Call(RawPeer* peer, Opcode opcode, uint64_t word) {
  const auto reply = peer->Call(LockHeader(peer, opcode, word), kKey);
  EXPECT_TRUE(reply.has_value());
  return reply.value_or(RawPeer::Reply{});
}

class LockTest : public ServerTest, public testing::WithParamInterface<LockMode> {
 protected:
  void SetUp() override {
    if (GetParam() != LockMode::kRpcServer && !TestDevice().caps.has_atomics()) {
      GTEST_SKIP() << TestDevice().name << " has no atomics";
    }
    StartServer([](Server::Options* options) { options->lock_mode = GetParam(); });
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, LockTest,
                         testing::Values(LockMode::kNicCas, LockMode::kRpcLoopback,
                                         LockMode::kRpcServer));

TEST_P(LockTest, IsTakenReleasedAndTakenAgainByRpc) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  EXPECT_EQ(peer.grant().lock_mode, static_cast<uint8_t>(GetParam()));
  const uint64_t word = WordOf(peer, 1);
  const auto taken = Call(&peer, Opcode::kLock, word);
  EXPECT_EQ(taken.status(), ReplyStatus::kOk);
  EXPECT_EQ(taken.header.lock.lock_word, word);
  EXPECT_EQ(Call(&peer, Opcode::kUnlock, word).status(), ReplyStatus::kOk);
  EXPECT_EQ(Call(&peer, Opcode::kLock, WordOf(peer, 2)).status(), ReplyStatus::kOk);
}

TEST_P(LockTest, HeldByAnotherSaysByWhom) {
  RawPeer holder(this);
  RawPeer other(this);
  ASSERT_TRUE(holder.Connect());
  ASSERT_TRUE(other.Connect());
  const uint64_t word = WordOf(holder, 1);
  ASSERT_EQ(Call(&holder, Opcode::kLock, word).status(), ReplyStatus::kOk);
  const auto refused = Call(&other, Opcode::kLock, WordOf(other, 1));
  EXPECT_EQ(refused.status(), ReplyStatus::kLockHeld);
  EXPECT_EQ(refused.header.lock.lock_word, word);
}

TEST_P(LockTest, NobodyTakesOrReleasesInAnothersName) {
  RawPeer holder(this);
  RawPeer other(this);
  ASSERT_TRUE(holder.Connect());
  ASSERT_TRUE(other.Connect());
  const uint64_t word = WordOf(holder, 1);
  ASSERT_EQ(Call(&holder, Opcode::kLock, word).status(), ReplyStatus::kOk);
  EXPECT_EQ(Call(&other, Opcode::kUnlock, word).status(), ReplyStatus::kInvalidArgument);
  EXPECT_EQ(Call(&other, Opcode::kLock, WordOf(holder, 2)).status(), ReplyStatus::kInvalidArgument);
  EXPECT_EQ(Call(&holder, Opcode::kUnlock, word).status(), ReplyStatus::kOk);
}

TEST_P(LockTest, WordForAnotherKeyIsRefused) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const uint64_t word = WordOf(peer, 1) ^ 1;
  EXPECT_EQ(Call(&peer, Opcode::kLock, word).status(), ReplyStatus::kInvalidArgument);
}

TEST_P(LockTest, SessionReleasesThroughAnyOfItsQueuePairs) {
  RawPeer first(this);
  RawPeer second(this);
  ASSERT_TRUE(first.Connect());
  ASSERT_TRUE(second.Join(first, 1));
  const uint64_t word = WordOf(first, 1);
  ASSERT_EQ(Call(&first, Opcode::kLock, word).status(), ReplyStatus::kOk);
  second.next_sequence = first.next_sequence;
  EXPECT_EQ(Call(&second, Opcode::kUnlock, word).status(), ReplyStatus::kOk);
}

TEST_P(LockTest, DuplicateIsAnsweredFromTheRecord) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const RequestHeader lock = LockHeader(&peer, Opcode::kLock, WordOf(peer, 1));
  ASSERT_EQ(peer.Call(lock, kKey)->status(), ReplyStatus::kOk);
  ASSERT_EQ(Call(&peer, Opcode::kUnlock, WordOf(peer, 1)).status(), ReplyStatus::kOk);
  EXPECT_EQ(peer.Call(lock, kKey)->status(), ReplyStatus::kOk) << "what was answered then";
  EXPECT_EQ(Call(&peer, Opcode::kUnlock, WordOf(peer, 1)).status(), ReplyStatus::kLockLost)
      << "it was not taken again";
}

TEST_P(LockTest, LockOfADeadClientIsBrokenAndItsWriteRefused) {
  RawPeer holder(this);
  RawPeer other(this);
  ASSERT_TRUE(holder.Connect());
  ASSERT_TRUE(other.Connect());
  const uint64_t word = WordOf(holder, 1);
  ASSERT_EQ(Call(&holder, Opcode::kLock, word).status(), ReplyStatus::kOk);
  ASSERT_EQ(Call(&other, Opcode::kLock, WordOf(other, 1)).status(), ReplyStatus::kLockHeld);

  constexpr int64_t kSilenceNs = int64_t{kSilenceMsDefault} * kNsPerMs;
  Pass(kSilenceNs * 2 / 3);
  ASSERT_TRUE(other.Call(other.Header(Opcode::kHeartbeat)));
  Pass(kSilenceNs * 2 / 3);  // so only the holder was silent for too long
  ASSERT_TRUE(StepUntil([this] { return stats().locks_broken == 1; }));
  EXPECT_EQ(Call(&other, Opcode::kLock, WordOf(other, 2)).status(), ReplyStatus::kOk);

  RawPeer resumed(this);
  ASSERT_TRUE(resumed.Join(holder, 0));
  RequestHeader late = resumed.Header(Opcode::kPut, kOnlyIfVersion | kUnderLock);
  late.key_bytes = sizeof(kKey) - 1;
  late.value_bytes = 4;
  late.write.lock_word = word;
  const auto refused = resumed.Call(late, kKey, "late");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status(), ReplyStatus::kLockLost);
  EXPECT_EQ(refused->header.write.lock_word, WordOf(other, 2));
}

TEST_P(LockTest, WriteUnderAHeldLockIsDone) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const uint64_t word = WordOf(peer, 1);
  ASSERT_EQ(Call(&peer, Opcode::kLock, word).status(), ReplyStatus::kOk);
  RequestHeader put = peer.Header(Opcode::kPut, kOnlyIfVersion | kUnderLock);
  put.key_bytes = sizeof(kKey) - 1;
  put.value_bytes = 5;
  put.write.lock_word = word;
  EXPECT_EQ(peer.Call(put, kKey, "value")->status(), ReplyStatus::kOk);
  EXPECT_EQ(peer.Get(kKey), "value");
}

TEST_P(LockTest, DisconnectReleasesAtOnce) {
  RawPeer other(this);
  ASSERT_TRUE(other.Connect());
  {
    RawPeer holder(this);
    ASSERT_TRUE(holder.Connect());
    ASSERT_EQ(Call(&holder, Opcode::kLock, WordOf(holder, 1)).status(), ReplyStatus::kOk);
  }
  ASSERT_TRUE(StepUntil([this] { return stats().locks_broken == 1; }));
  EXPECT_EQ(Call(&other, Opcode::kLock, WordOf(other, 1)).status(), ReplyStatus::kOk);
}

// Locks by the client's own device, if that has atomics.
class NicLockTest : public ServerTest {
 protected:
  void SetUp() override {
    if (!TestDevice().caps.has_atomics()) GTEST_SKIP() << TestDevice().name << " has no atomics";
    StartServer();
  }
};

TEST_F(NicLockTest, ClientsAndServerSwapTheSameWords) {
  RawPeer nic(this);
  RawPeer rpc(this);
  ASSERT_TRUE(nic.Connect());
  ASSERT_TRUE(rpc.Connect());
  const uint64_t word = WordOf(nic, 1);
  ASSERT_EQ(nic.Cas(IndexOf(nic), 0, word), 0u);
  const auto held = Call(&rpc, Opcode::kLock, WordOf(rpc, 1));
  EXPECT_EQ(held.status(), ReplyStatus::kLockHeld);
  EXPECT_EQ(held.header.lock.lock_word, word);
  ASSERT_EQ(nic.Cas(IndexOf(nic), word, 0), word);
  EXPECT_EQ(Call(&rpc, Opcode::kLock, WordOf(rpc, 1)).status(), ReplyStatus::kOk);
  EXPECT_EQ(nic.Cas(IndexOf(nic), 0, word), WordOf(rpc, 1));
}

TEST_F(NicLockTest, LockOfADeadClientIsBroken) {
  RawPeer other(this);
  ASSERT_TRUE(other.Connect());
  {
    RawPeer holder(this);
    ASSERT_TRUE(holder.Connect());
    ASSERT_EQ(holder.Cas(IndexOf(holder), 0, WordOf(holder, 1)), 0u);
  }
  ASSERT_TRUE(StepUntil([this] { return stats().locks_broken == 1; }));
  EXPECT_EQ(other.Cas(IndexOf(other), 0, WordOf(other, 1)), 0u);
}

// Puts a lock word there as a late compare-and-swap of a dead client would leave it.
TEST_F(NicLockTest, LateLockOfTheDeadIsBrokenToo) {
  RawPeer other(this);
  ASSERT_TRUE(other.Connect());
  uint64_t late = 0;
  {
    RawPeer holder(this);
    ASSERT_TRUE(holder.Connect());
    late = WordOf(holder, 9);
  }
  ASSERT_TRUE(StepUntil([this] { return stats().connections == 1; }));
  for (int i = 0; i < 100; ++i) Step();
  ASSERT_EQ(other.Cas(IndexOf(other), 0, late), 0u);
  Advance(LockJanitor::kQuickPassNsMin);
  ASSERT_TRUE(StepUntil([this] { return stats().locks_broken == 1; }));
  EXPECT_EQ(other.Cas(IndexOf(other), 0, WordOf(other, 1)), 0u);
}

TEST_F(NicLockTest, RegionItselfTakesNoWritesAndNoSwaps) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  EXPECT_EQ(peer.CasAt(peer.grant().region_address, peer.grant().region_rkey, 0, 1), std::nullopt);
  EXPECT_TRUE(peer.WaitBroken());
  RawPeer other(this);
  ASSERT_TRUE(other.Connect());
  EXPECT_EQ(other.Put("key", "value"), ReplyStatus::kOk);
}

}  // namespace
}  // namespace gannet
