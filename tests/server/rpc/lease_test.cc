// Locks that end in other ways than by their holder's unlock, and the list of locks.

#include <cstring>
#include <string>
#include <vector>

#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "gtest/gtest.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

constexpr uint64_t kLeaseMs = 1000;

class LeaseTest : public ServerTest, public testing::WithParamInterface<LockMode> {
 protected:
  void SetUp() override {
    if (GetParam() != LockMode::kRpcServer && !TestDevice().caps.has_atomics()) {
      GTEST_SKIP() << TestDevice().name << " has no atomics";
    }
    StartServer([](Server::Options* options) {
      options->lock_mode = GetParam();
      options->silence_ms = 60'000;  // nobody sends heartbeats here
    });
    ASSERT_TRUE(holder_.emplace(this).Connect());
    ASSERT_TRUE(other_.emplace(this).Connect());
  }
  void TearDown() override {
    holder_.reset();
    other_.reset();
    ServerTest::TearDown();
  }

  static uint64_t WordOf(const RawPeer& peer, uint32_t count, std::string_view key = "key") {
    const KeyHash hash = KeyHash::Of(key, peer.grant().hash_seed);
    return LockWord::Of(peer.grant().connection_id, count, hash.LockTag()).word();
  }
  static RequestHeader Header(RawPeer* peer, Opcode opcode, uint64_t word, uint64_t lease_ms,
                              size_t key_bytes = 3) {
    RequestHeader header = peer->Header(opcode);
    header.key_bytes = static_cast<uint16_t>(key_bytes);
    header.lock = {.lock_word = word, .lease_ms = lease_ms};
    return header;
  }
  static RawPeer::Reply Call(RawPeer* peer, Opcode opcode, uint64_t word, uint64_t lease_ms = 0) {
    const auto reply = peer->Call(Header(peer, opcode, word, lease_ms), "key");
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(RawPeer::Reply{});
  }
  static RawPeer::Reply Force(RawPeer* peer) {
    RequestHeader header = Header(peer, Opcode::kUnlock, 0, 0);
    header.flags = kForce;
    return *peer->Call(header, "key");
  }
  static RawPeer::Reply PutUnderLock(RawPeer* peer, uint64_t word, uint64_t version) {
    RequestHeader put = peer->Header(Opcode::kPut, kOnlyIfVersion | kUnderLock);
    put.key_bytes = 3;
    put.value_bytes = 5;
    put.write = {.expected_version = version, .lock_word = word};
    return *peer->Call(put, "key", "value");
  }
  // Returns whether the other client finds the lock free. Then it has the lock.
  bool OtherGetsIt(uint32_t count) {
    return Call(&*other_, Opcode::kLock, WordOf(*other_, count)).status() == ReplyStatus::kOk;
  }
  std::vector<LockEntry> List(uint64_t* index) {
    RequestHeader header = other_->Header(Opcode::kListLocks);
    header.list.position = *index;
    const auto reply = other_->Call(header);
    EXPECT_EQ(reply->status(), ReplyStatus::kOk);
    *index = reply->header.list.next;
    std::vector<LockEntry> entries(reply->value.size() / sizeof(LockEntry));
    if (entries.empty()) return entries;
    std::memcpy(entries.data(), reply->value.data(), entries.size() * sizeof(LockEntry));
    return entries;
  }

  std::optional<RawPeer> holder_;
  std::optional<RawPeer> other_;
};

INSTANTIATE_TEST_SUITE_P(Modes, LeaseTest,
                         testing::Values(LockMode::kNicCas, LockMode::kRpcServer));

TEST_P(LeaseTest, LockIsBrokenWhenItsLeaseIsOverAndItsHoldersWriteRefused) {
  const uint64_t word = WordOf(*holder_, 1);
  ASSERT_EQ(Call(&*holder_, Opcode::kLock, word, kLeaseMs).status(), ReplyStatus::kOk);
  Pass(900 * kNsPerMs);
  EXPECT_FALSE(OtherGetsIt(1));
  Pass(100 * kNsPerMs);
  ASSERT_TRUE(StepUntil([this] { return stats().locks_expired == 1; }));
  EXPECT_TRUE(OtherGetsIt(2));
  const auto write = PutUnderLock(&*holder_, word, 0);
  EXPECT_EQ(write.status(), ReplyStatus::kLockLost);
  EXPECT_EQ(write.header.write.lock_word, WordOf(*other_, 2));
  const auto extend = Call(&*holder_, Opcode::kExtendLock, word, kLeaseMs);
  EXPECT_EQ(extend.status(), ReplyStatus::kLockLost);
  EXPECT_EQ(extend.header.lock.lock_word, WordOf(*other_, 2));
  EXPECT_EQ(stats().locks_broken, 0u) << "those are of dead connections";
}

TEST_P(LeaseTest, LeaseIsGivenLaterRenewedAndTakenBack) {
  const uint64_t word = WordOf(*holder_, 1);
  ASSERT_EQ(Call(&*holder_, Opcode::kLock, word).status(), ReplyStatus::kOk);
  Pass(5 * kNsPerSecond);
  for (int i = 0; i < 5; ++i) {
    const auto extended = Call(&*holder_, Opcode::kExtendLock, word, kLeaseMs);
    EXPECT_EQ(extended.status(), ReplyStatus::kOk);
    EXPECT_EQ(extended.header.lock.lock_word, word);
    Pass(900 * kNsPerMs);
  }
  ASSERT_EQ(Call(&*holder_, Opcode::kExtendLock, word, /*lease_ms=*/0).status(), ReplyStatus::kOk);
  Pass(5 * kNsPerSecond);
  EXPECT_FALSE(OtherGetsIt(1));
  EXPECT_EQ(stats().locks_expired, 0u);
}

TEST_P(LeaseTest, LeaseEndsWithItsAcquisition) {
  const uint64_t first = WordOf(*holder_, 1), second = WordOf(*holder_, 2);
  ASSERT_EQ(Call(&*holder_, Opcode::kLock, first, kLeaseMs).status(), ReplyStatus::kOk);
  ASSERT_EQ(Call(&*holder_, Opcode::kUnlock, first).status(), ReplyStatus::kOk);
  ASSERT_EQ(Call(&*holder_, Opcode::kLock, second).status(), ReplyStatus::kOk);
  Pass(5 * kNsPerSecond);
  EXPECT_FALSE(OtherGetsIt(1));
  EXPECT_EQ(stats().locks_expired, 0u);
}

TEST_P(LeaseTest, RenewalThatWaitedWhileTheServerStoodStillCounts) {
  const uint64_t word = WordOf(*holder_, 1);
  ASSERT_EQ(Call(&*holder_, Opcode::kLock, word, kLeaseMs).status(), ReplyStatus::kOk);
  // The request is behind more messages than a worker reads in one Poll.
  RawPeer busy[3] = {RawPeer(this), RawPeer(this), RawPeer(this)};
  for (RawPeer& peer : busy) ASSERT_TRUE(peer.Connect());
  for (RawPeer& peer : busy) {
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(peer.Send(peer.Header(Opcode::kHeartbeat)));
    ASSERT_TRUE(peer.WaitSent());
  }
  ASSERT_TRUE(holder_->Send(Header(&*holder_, Opcode::kExtendLock, word, kLeaseMs), "key"));
  ASSERT_TRUE(holder_->WaitSent());
  Advance(3 * kNsPerSecond);
  EXPECT_EQ(holder_->Receive()->status(), ReplyStatus::kOk);
  EXPECT_FALSE(OtherGetsIt(1));
}

TEST_P(LeaseTest, NobodyExtendsInAnothersName) {
  const uint64_t word = WordOf(*holder_, 1);
  ASSERT_EQ(Call(&*holder_, Opcode::kLock, word, kLeaseMs).status(), ReplyStatus::kOk);
  const auto refused = Call(&*other_, Opcode::kExtendLock, word, 60'000);
  EXPECT_EQ(refused.status(), ReplyStatus::kLockLost);
  Pass(kLeaseMs * kNsPerMs);
  EXPECT_TRUE(StepUntil([this] { return stats().locks_expired == 1; }));
}

TEST_P(LeaseTest, NobodyWritesUnderAnothersLock) {
  const uint64_t word = WordOf(*holder_, 1);
  ASSERT_EQ(Call(&*holder_, Opcode::kLock, word).status(), ReplyStatus::kOk);
  const auto refused = PutUnderLock(&*other_, word, 0);
  EXPECT_EQ(refused.status(), ReplyStatus::kLockLost);
  EXPECT_EQ(refused.header.write.lock_word, word);
  EXPECT_EQ(other_->Get("key"), std::nullopt);
  EXPECT_EQ(PutUnderLock(&*holder_, word, 0).status(), ReplyStatus::kOk);
}

TEST_P(LeaseTest, ForcedUnlockBreaksWhoeversLockItIs) {
  EXPECT_EQ(Force(&*other_).status(), ReplyStatus::kNotFound);
  const uint64_t word = WordOf(*holder_, 1);
  ASSERT_EQ(Call(&*holder_, Opcode::kLock, word, kLeaseMs).status(), ReplyStatus::kOk);
  const auto forced = Force(&*other_);
  EXPECT_EQ(forced.status(), ReplyStatus::kOk);
  EXPECT_EQ(forced.header.lock.lock_word, word);
  EXPECT_EQ(PutUnderLock(&*holder_, word, 0).status(), ReplyStatus::kLockLost);
  EXPECT_TRUE(OtherGetsIt(1));
  Pass(2 * kLeaseMs * kNsPerMs);
  EXPECT_EQ(stats().locks_expired, 0u) << "the lease went with the lock";
}

TEST_P(LeaseTest, ListSaysWhoHoldsWhatAndForHowLong) {
  uint64_t index = 0;
  EXPECT_TRUE(List(&index).empty());
  EXPECT_EQ(index, 0u);
  const uint64_t word = WordOf(*holder_, 1);
  ASSERT_EQ(Call(&*holder_, Opcode::kLock, word, kLeaseMs).status(), ReplyStatus::kOk);
  Advance(400 * kNsPerMs);
  const std::vector<LockEntry> held = List(&index);
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].lock_word, word);
  EXPECT_EQ(held[0].index, KeyHash::Of("key", holder_->grant().hash_seed).LockIndex(256));
  EXPECT_EQ(held[0].session_id, holder_->grant().session_id);
  EXPECT_EQ(held[0].lease_ms, 600u);
  EXPECT_NE(std::string(held[0].peer).find(':'), std::string::npos) << held[0].peer;
}

TEST_P(LeaseTest, LongListComesInPages) {
  size_t taken = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string key = "key" + std::to_string(i);
    const auto reply = holder_->Call(
        Header(&*holder_, Opcode::kLock, WordOf(*holder_, i, key), 0, key.size()), key);
    taken += reply->status() == ReplyStatus::kOk;
  }
  ASSERT_GT(taken, 63u) << "what fits one reply";
  size_t listed = 0;
  uint64_t index = 0;
  do {
    for (const LockEntry& entry : List(&index)) {
      EXPECT_EQ(entry.session_id, holder_->grant().session_id);
      EXPECT_EQ(entry.lease_ms, 0u);
      ++listed;
    }
  } while (index != 0);
  EXPECT_EQ(listed, taken);
}

// The server has not known the lock before.
TEST_P(LeaseTest, LockThatTheClientsOwnNicTookGetsALease) {
  if (GetParam() != LockMode::kNicCas) GTEST_SKIP() << "clients do not swap lock words here";
  const uint64_t word = WordOf(*holder_, 1);
  const size_t index = KeyHash::Of("key", holder_->grant().hash_seed).LockIndex(256);
  EXPECT_EQ(Call(&*holder_, Opcode::kExtendLock, word, kLeaseMs).status(), ReplyStatus::kLockLost);
  ASSERT_EQ(holder_->Cas(index, 0, word), 0u);
  ASSERT_EQ(Call(&*holder_, Opcode::kExtendLock, word, kLeaseMs).status(), ReplyStatus::kOk);
  Pass(kLeaseMs * kNsPerMs);
  ASSERT_TRUE(StepUntil([this] { return stats().locks_expired == 1; }));
  EXPECT_EQ(other_->Cas(index, 0, WordOf(*other_, 1)), 0u);
}

}  // namespace
}  // namespace gannet
