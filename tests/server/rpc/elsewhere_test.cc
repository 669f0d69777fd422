// Keys whose partition another group has.

#include <gtest/gtest.h>

#include <string>

#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "common/protocol/partition_map.h"
#include "server/group/replica/group_standing.h"
#include "tests/server/rpc/kept_stream.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

const std::string kHere = "here";
const std::string kGone = "gone";

// All partitions but that of kGone.
GroupPartitions WithoutGone(uint64_t revision) {
  GroupPartitions partitions = {.revision = revision, .lost = revision, .alone = false};
  partitions.served.set();
  partitions.served[PartitionOf(kGone)] = false;
  return partitions;
}

// The partition is here again.
GroupPartitions WithGone(uint64_t revision) {
  GroupPartitions partitions = WithoutGone(revision);
  partitions.served.set();
  return partitions;
}

// A primary whose records are committed at once.
class ElsewhereTest : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NE(PartitionOf(kHere), PartitionOf(kGone));
    standing_.SetServes(true);
    StartServer([this](Server::Options* options) {
      options->standing = &standing_;
      options->streams_sessions = true;
      options->clocks.boot = [] { return kLeaseNow; };
    });
    server().AddConsumer(&stream_, ChangeStream::Need::kRequired);
  }
  void TearDown() override { StopServer(); }
  void Step() override {
    ServerTest::Step();
    stream_.Commit(stream_.log().size());
  }

  GroupStanding standing_{kHistory};
  KeptStream stream_;
};

TEST_F(ElsewhereTest, EverythingIsHereUntilAMapSaysOtherwise) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  EXPECT_EQ(peer.Put(kGone, "value"), ReplyStatus::kOk);
  EXPECT_EQ(peer.Get(kGone), "value");
}

TEST_F(ElsewhereTest, RefusesAllThatNamesAKeyOfAnotherGroup) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  standing_.SetPartitions(WithoutGone(7));
  for (const Opcode opcode : {Opcode::kGet, Opcode::kPut, Opcode::kDelete, Opcode::kAppend,
                              Opcode::kTouch, Opcode::kLock}) {
    SCOPED_TRACE(static_cast<int>(opcode));
    RequestHeader header = peer.Header(opcode);
    header.key_bytes = static_cast<uint16_t>(kGone.size());
    if (opcode == Opcode::kLock) header.lock.lock_word = 1;
    const auto reply = peer.Call(header, kGone);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->status(), ReplyStatus::kElsewhere);
    EXPECT_EQ(reply->header.words[0], 7u) << "the map's revision";
    const bool writes = opcode != Opcode::kGet && opcode != Opcode::kLock;
    EXPECT_EQ(reply->header.words[1], writes ? kPutOffInOrder : 0);
  }
  EXPECT_EQ(peer.Put(kHere, "value"), ReplyStatus::kOk);
  EXPECT_EQ(peer.Get(kHere), "value");
  EXPECT_EQ(stats().items, 1u);
}

TEST_F(ElsewhereTest, AnAnswerThatIsRememberedComesFirst) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  RequestHeader first = peer.Header(Opcode::kPut);
  first.key_bytes = static_cast<uint16_t>(kGone.size());
  const auto put = peer.Call(first, kGone);
  ASSERT_TRUE(put.has_value());
  ASSERT_EQ(put->status(), ReplyStatus::kOk);

  standing_.SetPartitions(WithoutGone(1));
  const auto again = peer.Call(first, kGone);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->status(), ReplyStatus::kOk) << "it was executed here";
  EXPECT_EQ(again->header.write.version, put->header.write.version);
}

TEST_F(ElsewhereTest, WhatWasRefusedIsExecutedIfThePartitionIsBack) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  standing_.SetPartitions(WithoutGone(1));
  RequestHeader header = peer.Header(Opcode::kPut);
  header.key_bytes = static_cast<uint16_t>(kGone.size());
  auto reply = peer.Call(header, kGone);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status(), ReplyStatus::kElsewhere);

  standing_.SetPartitions(WithGone(2));
  header.flags = kSentAgain;
  reply = peer.Call(header, kGone);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status(), ReplyStatus::kOk);
}

// The client sent both before it was told of the first one.
TEST_F(ElsewhereTest, AWriteBehindARefusedOneIsNotExecutedAlthoughThePartitionIsBack) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Put(kGone, "0"), ReplyStatus::kOk);
  const auto put = [&](const std::string& value, uint8_t flags = 0) {
    RequestHeader header = peer.Header(Opcode::kPut, flags);
    header.key_bytes = static_cast<uint16_t>(kGone.size());
    header.value_bytes = static_cast<uint32_t>(value.size());
    return peer.Call(header, kGone, value).value();
  };
  standing_.SetPartitions(WithoutGone(1));
  ASSERT_EQ(put("1").status(), ReplyStatus::kElsewhere);
  ASSERT_EQ(put("1", kSentAgain).status(), ReplyStatus::kElsewhere) << "it waits still";
  standing_.SetPartitions(WithGone(2));
  const auto behind = put("2");
  EXPECT_EQ(behind.status(), ReplyStatus::kTryAgain);
  EXPECT_EQ(behind.header.write.version, kPutOffInOrder);
  EXPECT_EQ(peer.Put(kHere, "2"), ReplyStatus::kOk) << "another key";
  EXPECT_EQ(peer.Get(kGone), "0");
  EXPECT_EQ(put("1", kSentAgain).status(), ReplyStatus::kOk);
  EXPECT_EQ(put("2").status(), ReplyStatus::kOk);
  EXPECT_EQ(peer.Get(kGone), "2");
}

TEST_F(ElsewhereTest, ALockIsReleasedWhereItWasTaken) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  standing_.SetPartitions(WithoutGone(1));
  RequestHeader header = peer.Header(Opcode::kUnlock, kForce);
  header.key_bytes = static_cast<uint16_t>(kGone.size());
  const auto reply = peer.Call(header, kGone);
  ASSERT_TRUE(reply.has_value());
  EXPECT_NE(reply->status(), ReplyStatus::kElsewhere);
}

// Somebody else may have had the lock meanwhile, at another group.
class MovedLockTest : public ElsewhereTest {
 protected:
  static uint64_t Word(RawPeer* peer, uint32_t count) {
    const KeyHash hash = KeyHash::Of(kGone, peer->grant().hash_seed);
    return LockWord::Of(peer->grant().connection_id, count, hash.LockTag()).word();
  }
  static RequestHeader Header(RawPeer* peer, Opcode opcode, uint32_t count) {
    RequestHeader header = peer->Header(opcode);
    header.key_bytes = static_cast<uint16_t>(kGone.size());
    header.lock.lock_word = Word(peer, count);
    return header;
  }
  // A PUT of an absent key under its lock.
  static RequestHeader PutHeader(RawPeer* peer, uint32_t count, uint8_t more = 0) {
    RequestHeader header =
        peer->Header(Opcode::kPut, static_cast<uint8_t>(kUnderLock | kOnlyIfVersion | more));
    header.key_bytes = static_cast<uint16_t>(kGone.size());
    header.write.lock_word = Word(peer, count);
    return header;
  }
  RawPeer::Reply Call(RawPeer* peer, Opcode opcode, uint32_t count) {
    const auto reply = peer->Call(Header(peer, opcode, count), kGone);
    EXPECT_TRUE(reply.has_value());
    return reply.value_or(RawPeer::Reply{});
  }
  // The partition of kGone was changed last at this revision.
  void ComesBack(uint64_t revision) {
    GroupPartitions partitions = WithoutGone(revision);
    partitions.served.set();
    partitions.changed.resize(kPartitions);
    partitions.changed[PartitionOf(kGone)] = revision;
    standing_.SetPartitions(partitions);
  }
};

TEST_F(MovedLockTest, IsLostIfThePartitionIsElsewhere) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(Call(&peer, Opcode::kLock, 1).status(), ReplyStatus::kOk);
  standing_.SetPartitions(WithoutGone(1));
  const auto reply = Call(&peer, Opcode::kUnlock, 1);
  EXPECT_EQ(reply.status(), ReplyStatus::kLockLost);
  EXPECT_EQ(reply.header.lock.lock_word, 0u) << "other keys may share the word";
}

TEST_F(MovedLockTest, IsLostIfThePartitionWasElsewhere) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  for (uint32_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(Call(&peer, Opcode::kLock, i).status(), ReplyStatus::kOk);
    ComesBack(i);
    EXPECT_EQ(Call(&peer, Opcode::kUnlock, i).status(), ReplyStatus::kLockLost);
  }
}

TEST_F(MovedLockTest, IsKeptWhileThePartitionIsHere) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ComesBack(1);
  ASSERT_EQ(Call(&peer, Opcode::kLock, 1).status(), ReplyStatus::kOk);
  EXPECT_EQ(Call(&peer, Opcode::kUnlock, 1).status(), ReplyStatus::kOk);
  ASSERT_EQ(Call(&peer, Opcode::kLock, 2).status(), ReplyStatus::kOk);
  EXPECT_EQ(Call(&peer, Opcode::kUnlock, 2).status(), ReplyStatus::kOk);
}

// Nobody wrote the key meanwhile, so its version says nothing.
TEST_F(MovedLockTest, GuardsNoWriteIfThePartitionWasElsewhere) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  for (uint32_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(Call(&peer, Opcode::kLock, i).status(), ReplyStatus::kOk);
    ComesBack(i);
    const auto put = peer.Call(PutHeader(&peer, i), kGone);
    ASSERT_TRUE(put.has_value());
    EXPECT_EQ(put->status(), ReplyStatus::kLockLost);
    EXPECT_EQ(Call(&peer, Opcode::kUnlock, i).status(), ReplyStatus::kLockLost);
  }
  EXPECT_EQ(stats().items, 0u);
}

TEST_F(MovedLockTest, GuardsWritesWhileThePartitionIsHere) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ComesBack(1);
  ASSERT_EQ(Call(&peer, Opcode::kLock, 1).status(), ReplyStatus::kOk);
  standing_.SetPartitions([] {  // another partition has changed
    GroupPartitions partitions = WithGone(2);
    partitions.changed.resize(kPartitions);
    partitions.changed[PartitionOf(kGone)] = 1;
    partitions.changed[PartitionOf(kHere)] = 2;
    return partitions;
  }());
  const auto put = peer.Call(PutHeader(&peer, 1), kGone);
  ASSERT_TRUE(put.has_value());
  EXPECT_EQ(put->status(), ReplyStatus::kOk);
}

TEST_F(MovedLockTest, GuardsNoLongValueIfThePartitionWasElsewhereWhileItWasRead) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(Call(&peer, Opcode::kLock, 1).status(), ReplyStatus::kOk);
  RequestHeader header = PutHeader(&peer, 1, kValueInBuffer);
  header.value_bytes = 1 << 20;
  header.write.buffer_address = peer.lent().address();
  header.write.buffer_rkey = peer.lent().rkey();
  ASSERT_TRUE(peer.Send(header, kGone));
  ASSERT_TRUE(peer.WaitSent());
  server().workers()[0]->Poll(now());  // begins to READ
  ComesBack(1);
  const auto reply = peer.Receive();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status(), ReplyStatus::kLockLost);
  EXPECT_EQ(stats().items, 0u);
}

// Its compare-and-swap was under way when the partition was closed.
TEST_F(MovedLockTest, IsNotTakenIfThePartitionIsElsewhereBeforeTheAnswer) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_TRUE(peer.Send(Header(&peer, Opcode::kLock, 1), kGone));
  ASSERT_TRUE(peer.WaitSent());
  server().workers()[0]->Poll(now());  // begins the compare-and-swap
  standing_.SetPartitions(WithoutGone(1));
  const auto reply = peer.Receive();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status(), ReplyStatus::kElsewhere);
  ComesBack(2);
  EXPECT_EQ(Call(&peer, Opcode::kLock, 2).status(), ReplyStatus::kOk) << "it was given back";
}

// It was not refused when it came, and is decided once its value is here.
TEST_F(ElsewhereTest, ALongValueIsRefusedIfThePartitionIsGoneWhenItIsDecided) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  RequestHeader header = peer.Header(Opcode::kPut, kValueInBuffer);
  header.key_bytes = static_cast<uint16_t>(kGone.size());
  header.value_bytes = 1 << 20;
  header.write.buffer_address = peer.lent().address();
  header.write.buffer_rkey = peer.lent().rkey();
  ASSERT_TRUE(peer.Send(header, kGone));
  ASSERT_TRUE(peer.WaitSent());
  server().workers()[0]->Poll(now());  // begins to READ
  ASSERT_EQ(stats().rpcs, 1u);
  standing_.SetPartitions(WithoutGone(7));
  const auto reply = peer.Receive();
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->status(), ReplyStatus::kElsewhere);
  EXPECT_EQ(reply->header.words[0], 7u) << "the map's revision";
  EXPECT_EQ(server().workers()[0]->busy(), 0u);
  EXPECT_EQ(stats().items, 0u);

  // It was not executed, and is if it comes again.
  standing_.SetPartitions(WithGone(8));
  const auto again = peer.Call(header, kGone);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->status(), ReplyStatus::kOk);
}

// Only so many GETs of long values are served at once. The others wait for a buffer.
TEST_F(ElsewhereTest, AGetThatWaitedIsRefusedIfThePartitionIsGoneMeanwhile) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  constexpr uint32_t kBytes = 4'040;  // too long for a message, but not in a large item
  RequestHeader put = peer.Header(Opcode::kPut, kValueInBuffer);
  put.key_bytes = static_cast<uint16_t>(kGone.size());
  put.value_bytes = kBytes;
  put.write.buffer_address = peer.lent().address();
  put.write.buffer_rkey = peer.lent().rkey();
  ASSERT_EQ(peer.Call(put, kGone)->status(), ReplyStatus::kOk);
  constexpr int kGets = 12;
  for (int i = 0; i < kGets; ++i) {
    RequestHeader get = peer.Header(Opcode::kGet, kValueInBuffer);
    get.key_bytes = static_cast<uint16_t>(kGone.size());
    get.get = {.buffer_address = peer.lent().address() + uint64_t{kBytes} * i,
               .buffer_rkey = peer.lent().rkey(),
               .buffer_bytes = kBytes};
    ASSERT_TRUE(peer.Send(get, kGone));
  }
  ASSERT_TRUE(peer.WaitSent());
  server().workers()[0]->Poll(now());
  ASSERT_EQ(stats().rpcs, 1u + kGets);
  standing_.SetPartitions(WithoutGone(7));
  int served = 0;
  for (int i = 0; i < kGets; ++i) {
    const auto reply = peer.Receive();
    ASSERT_TRUE(reply.has_value());
    const bool is_served = reply->status() == ReplyStatus::kOk;
    served += is_served;
    EXPECT_TRUE(is_served || reply->status() == ReplyStatus::kElsewhere);
  }
  EXPECT_GT(served, 0);
  EXPECT_LT(served, kGets);
  EXPECT_TRUE(StepUntil([this] { return server().workers()[0]->busy() == 0; }));
}

TEST_F(ElsewhereTest, AWorkerSaysByWhichMapItDecides) {
  const Worker& worker = *server().workers()[0];
  Step();
  EXPECT_EQ(worker.map_revision(), 0u);
  standing_.SetPartitions(WithoutGone(7));
  EXPECT_EQ(worker.map_revision(), 0u);
  Step();
  EXPECT_EQ(worker.map_revision(), 7u);
}

TEST_F(ElsewhereTest, ALeaseSaysForWhichMapsItHolds) {
  standing_.SetLeaseEnd(kLeaseNow + 500 * kNsPerMs);
  RawPeer before(this);
  ASSERT_TRUE(before.Connect());
  EXPECT_EQ(before.grant().primary_lease_ms, 500u);
  const RequestHeader heartbeat{};
  auto reply = before.Call(heartbeat);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->header.clock.leases_from, 0u);

  standing_.SetPartitions(WithoutGone(7));
  reply = before.Call(heartbeat);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->header.primary_lease_ms, 500u);
  EXPECT_EQ(reply->header.clock.leases_from, 7u);
  RawPeer after(this);
  ASSERT_TRUE(after.Connect());
  EXPECT_EQ(after.grant().primary_lease_ms, 0u) << "a grant cannot say for which maps";
}

}  // namespace
}  // namespace gannet
