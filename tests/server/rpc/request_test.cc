#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "common/protocol/heartbeats.h"
#include "gtest/gtest.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

class RequestTest : public ServerTest {
 protected:
  void SetUp() override {
    StartServer();
    ASSERT_TRUE(peer_.emplace(this).Connect());
  }
  void TearDown() override {
    peer_.reset();
    ServerTest::TearDown();
  }
  RequestHeader Header(Opcode opcode, std::string_view key = "", std::string_view value = "") {
    RequestHeader header = peer_->Header(opcode);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = static_cast<uint32_t>(value.size());
    return header;
  }
  // Expects that the server lives and serves others.
  void ExpectServing() {
    RawPeer other(this);
    ASSERT_TRUE(other.Connect());
    EXPECT_EQ(other.Put("another", "value"), ReplyStatus::kOk);
    EXPECT_EQ(other.Get("another"), "value");
  }

  std::optional<RawPeer> peer_;
};

TEST_F(RequestTest, PutGetDelete) {
  EXPECT_EQ(peer_->Put("key", "value"), ReplyStatus::kOk);
  EXPECT_EQ(peer_->Get("key"), "value");
  EXPECT_EQ(peer_->Call(Header(Opcode::kDelete, "key"), "key")->status(), ReplyStatus::kOk);
  EXPECT_EQ(peer_->Get("key"), std::nullopt);
  EXPECT_EQ(peer_->Call(Header(Opcode::kDelete, "key"), "key")->status(), ReplyStatus::kNotFound);
}

TEST_F(RequestTest, ValuesUpToTheEagerLimitTravelInMessages) {
  const std::string key(250, 'k');
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{200}, EagerValueBytesMax(key.size())}) {
    const std::string value(bytes, static_cast<char>('a' + bytes % 26));
    ASSERT_EQ(peer_->Put(key, value), ReplyStatus::kOk) << bytes;
    ASSERT_EQ(peer_->Get(key), value) << bytes;
  }
}

TEST_F(RequestTest, RepliesCarryVersionAndPlace) {
  const auto put = peer_->Call(Header(Opcode::kPut, "key", "v"), "key", "v");
  ASSERT_TRUE(put);
  EXPECT_NE(put->header.write.version, 0u);
  EXPECT_NE(put->header.write.slot, 0u);
  const auto get = peer_->Call(Header(Opcode::kGet, "key"), "key");
  EXPECT_EQ(get->header.get.version, put->header.write.version);
  EXPECT_EQ(get->header.get.slot, put->header.write.slot);
}

TEST_F(RequestTest, UnknownOpcodeIsUnimplementedAndHarmless) {
  RequestHeader header = Header(Opcode::kPing);
  header.opcode = 200;
  const auto reply = peer_->Call(header);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status(), ReplyStatus::kUnimplemented);
  EXPECT_EQ(reply->header.opcode, 200);
  EXPECT_EQ(reply->header.sequence, header.sequence);
  EXPECT_EQ(peer_->Call(Header(Opcode::kPing))->status(), ReplyStatus::kOk);
}

TEST_F(RequestTest, MalformedRequestsAreInvalidAndHarmless) {
  RequestHeader long_key = Header(Opcode::kPut);
  long_key.key_bytes = 251;
  EXPECT_EQ(peer_->Call(long_key, std::string(251, 'k'))->status(), ReplyStatus::kInvalidArgument);
  RequestHeader no_key = Header(Opcode::kGet);
  EXPECT_EQ(peer_->Call(no_key)->status(), ReplyStatus::kInvalidArgument);
  RequestHeader not_reserved = Header(Opcode::kPing);
  not_reserved.heartbeat.server_set = 1;
  EXPECT_EQ(peer_->Call(not_reserved)->status(), ReplyStatus::kInvalidArgument);
  RequestHeader lying = Header(Opcode::kPut, "key");
  lying.value_bytes = 1000;  // the message ends after the key
  EXPECT_EQ(peer_->Call(lying, "key")->status(), ReplyStatus::kInvalidArgument);
  RequestHeader huge = Header(Opcode::kPut, "key");
  huge.flags = kValueInBuffer;
  huge.value_bytes = UINT32_MAX;
  EXPECT_EQ(peer_->Call(huge, "key")->status(), ReplyStatus::kInvalidArgument);
  EXPECT_EQ(peer_->Get("key"), std::nullopt);
  EXPECT_FALSE(peer_->broken());
}

TEST_F(RequestTest, MessageShorterThanAHeaderBreaksTheConnection) {
  const std::array<std::byte, sizeof(RequestHeader) - 1> message{};
  ASSERT_TRUE(peer_->Send(message));
  EXPECT_TRUE(peer_->WaitBroken());
  ExpectServing();
}

TEST_F(RequestTest, EmptyMessageBreaksTheConnection) {
  ASSERT_TRUE(peer_->Send(std::span<const std::byte>()));
  EXPECT_TRUE(peer_->WaitBroken());
  ExpectServing();
}

TEST_F(RequestTest, HeartbeatsAreAnsweredAndNotCountedAsRequests) {
  const uint64_t rpcs = stats().rpcs;
  const auto reply = peer_->Call(Header(Opcode::kHeartbeat));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->header.sequence, 0u);
  EXPECT_EQ(reply->status(), ReplyStatus::kOk);
  EXPECT_EQ(stats().heartbeats, 1u);
  EXPECT_EQ(stats().rpcs, rpcs);
}

TEST_F(RequestTest, StatsCountWhatWasServed) {
  ASSERT_EQ(peer_->Put("key", "value"), ReplyStatus::kOk);
  const auto reply = peer_->Call(Header(Opcode::kStats));
  ASSERT_EQ(reply->value.size(), sizeof(StatsReply));
  StatsReply stats;
  std::memcpy(&stats, reply->value.data(), sizeof(stats));
  EXPECT_EQ(stats.rpcs, 2u) << "itself included";
  EXPECT_EQ(stats.items, 1u);
  EXPECT_EQ(stats.sessions, 1u);
  EXPECT_EQ(stats.connections, 1u);
  EXPECT_GT(stats.slots_total, 0u);
  EXPECT_GT(stats.heap_total, 0u);
  EXPECT_GT(stats.cpu_us, 0u);
}

// Updates in place are counted in batches. A STATS request between them reports all before it.
TEST_F(RequestTest, StatsCountTheUpdatesOfTheSamePoll) {
  ASSERT_EQ(peer_->Put("key", "value"), ReplyStatus::kOk);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(peer_->Send(Header(Opcode::kPut, "key", "other"), "key", "other"));
  }
  ASSERT_TRUE(peer_->Send(Header(Opcode::kStats)));
  ASSERT_TRUE(peer_->Send(Header(Opcode::kPut, "key", "third"), "key", "third"));
  ASSERT_TRUE(peer_->WaitSent()) << "all of them lie in the server's receive queue";
  for (int i = 0; i < 5; ++i) ASSERT_EQ(peer_->Receive()->status(), ReplyStatus::kOk);
  const auto reply = peer_->Receive();
  ASSERT_TRUE(reply);
  ASSERT_EQ(reply->value.size(), sizeof(StatsReply));
  StatsReply told;
  std::memcpy(&told, reply->value.data(), sizeof(told));
  EXPECT_EQ(told.rpcs, 7u) << "itself included";
  ASSERT_EQ(peer_->Receive()->status(), ReplyStatus::kOk);
  EXPECT_EQ(stats().rpcs, 8u);
  EXPECT_EQ(peer_->Get("key"), "third");
}

TEST_F(RequestTest, DuplicateUpdateIsAnsweredFromTheRecordAndNotExecuted) {
  ASSERT_EQ(peer_->Put("key", "first"), ReplyStatus::kOk);
  const RequestHeader put = Header(Opcode::kPut, "key", "value");
  const auto first = peer_->Call(put, "key", "value");
  ASSERT_EQ(peer_->Put("key", "third"), ReplyStatus::kOk);
  const auto again = peer_->Call(put, "key", "value");
  ASSERT_TRUE(first && again);
  EXPECT_EQ(again->status(), ReplyStatus::kOk);
  EXPECT_EQ(again->header.sequence, put.sequence);
  EXPECT_EQ(again->header.write.version, first->header.write.version);
  EXPECT_EQ(again->header.write.slot, first->header.write.slot);
  EXPECT_EQ(peer_->Get("key"), "third");
}

TEST_F(RequestTest, DuplicateIsAnsweredFromTheRecordAndNotExecuted) {
  RequestHeader put = Header(Opcode::kPut, "key", "first");
  put.flags = kOnlyIfAbsent;
  const auto first = peer_->Call(put, "key", "first");
  ASSERT_EQ(first->status(), ReplyStatus::kOk);
  const auto again = peer_->Call(put, "key", "first");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->status(), ReplyStatus::kOk) << "executed anew it would be kExists";
  EXPECT_EQ(again->header.write.version, first->header.write.version);
  EXPECT_EQ(again->header.sequence, put.sequence);
}

TEST_F(RequestTest, NumberBelowTheWindowIsRefused) {
  const RequestHeader old = Header(Opcode::kPut, "key", "v");
  for (int i = 0; i < kCreditsDefault; ++i) peer_->Call(Header(Opcode::kPing));
  EXPECT_EQ(peer_->Call(old, "key", "v")->status(), ReplyStatus::kInvalidArgument);
  EXPECT_EQ(peer_->Get("key"), std::nullopt);
}

TEST_F(RequestTest, HostileSequenceNumberBreaksTheConnection) {
  RequestHeader ping = Header(Opcode::kPing);
  ping.sequence = UINT64_MAX;
  ASSERT_TRUE(peer_->Send(ping));
  EXPECT_TRUE(peer_->WaitBroken());
  ExpectServing();
}

// A client does this while it waits for the answers of a stalled server.
TEST_F(RequestTest, AllCreditsAndSomeHeartbeatsMayBeUnansweredAtOnce) {
  for (int i = 0; i < kCreditsDefault; ++i) ASSERT_TRUE(peer_->Send(Header(Opcode::kPing)));
  for (uint32_t i = 0; i < kHeartbeatsUnansweredMax; ++i) {
    ASSERT_TRUE(peer_->Send(Header(Opcode::kHeartbeat)));
  }
  ASSERT_TRUE(peer_->WaitSent());
  uint64_t sequence = 0;
  for (int i = 0; i < kCreditsDefault; ++i) {
    const auto reply = peer_->Receive();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->header.sequence, ++sequence);
  }
  for (uint32_t i = 0; i < kHeartbeatsUnansweredMax; ++i) EXPECT_TRUE(peer_->Receive());
}

// The server takes all messages in one go, so it sees at once if a client overran its credits.
TEST_F(RequestTest, FloodBeyondTheCreditsBreaksTheConnection) {
  constexpr int kFlood = 60;
  for (int i = 0; i < kFlood; ++i) ASSERT_TRUE(peer_->Send(Header(Opcode::kPing)));
  ASSERT_TRUE(peer_->WaitSent()) << "all of them lie in the server's receive queue";
  EXPECT_TRUE(peer_->WaitBroken());
  ExpectServing();
}

TEST_F(RequestTest, FloodOfUpdatesBreaksTheConnectionToo) {
  constexpr int kFlood = 60;
  ASSERT_EQ(peer_->Put("key", "value"), ReplyStatus::kOk);
  for (int i = 0; i < kFlood; ++i) {
    ASSERT_TRUE(peer_->Send(Header(Opcode::kPut, "key", "other"), "key", "other"));
  }
  ASSERT_TRUE(peer_->WaitSent()) << "all of them lie in the server's receive queue";
  EXPECT_TRUE(peer_->WaitBroken());
  ExpectServing();
}

// All receives are posted again, however often one client floods.
TEST_F(RequestTest, FloodsDoNotDrainTheSharedReceiveQueue) {
  for (int round = 0; round < 30; ++round) {
    RawPeer hostile(this);
    ASSERT_TRUE(hostile.Connect());
    for (int i = 0; i < 100; ++i) {
      RequestHeader header = hostile.Header(Opcode::kPing);
      if (!hostile.Send(header)) break;
    }
    ASSERT_EQ(peer_->Call(Header(Opcode::kPing))->status(), ReplyStatus::kOk) << round;
  }
  ExpectServing();
}

TEST_F(RequestTest, ExpiredItemsGoWithoutAnybodyAskingForThem) {
  RequestHeader put = Header(Opcode::kPut, "key", "value");
  put.write.ttl_ms = 5000;
  ASSERT_EQ(peer_->Call(put, "key", "value")->status(), ReplyStatus::kOk);
  Step();
  ASSERT_EQ(stats().items, 1u);
  for (int second = 0; second < 320; ++second) {
    Advance(kNsPerSecond);
    Step();
  }
  EXPECT_EQ(stats().items, 0u);
  EXPECT_EQ(stats().heap_bytes, 0u);
}

// Sends headers with a few wrong bits, and noise, as messages of all lengths.
TEST_F(RequestTest, SurvivesRandomMessages) {
  std::mt19937 random(static_cast<uint32_t>(test_support::TestSeed()));
  ASSERT_EQ(peer_->Put("anchor", "value"), ReplyStatus::kOk);
  for (int round = 0; round < 40; ++round) {
    RawPeer hostile(this);
    ASSERT_TRUE(hostile.Connect());
    for (int i = 0; i < 25 && !hostile.broken(); ++i) {
      RequestHeader header = hostile.Header(static_cast<Opcode>(random() % 10));
      header.flags = static_cast<uint8_t>(random() % 16);
      header.key_bytes = static_cast<uint16_t>(random() % 300);
      header.value_bytes = random() % 4 == 0 ? random() : random() % 5000;
      const uint64_t address = hostile.lent().address() + random() % 4096;
      const uint32_t rkey = random() % 4 == 0 ? random() : hostile.lent().rkey();
      if (header.opcode == static_cast<uint8_t>(Opcode::kGet)) {
        header.get = {.buffer_address = address,
                      .buffer_rkey = rkey,
                      .buffer_bytes = std::exchange(header.value_bytes, 0)};
      } else if (header.opcode == static_cast<uint8_t>(Opcode::kPut)) {
        header.write.buffer_address = address;
        header.write.buffer_rkey = rkey;
      }
      std::array<std::byte, kMessageBytesMax> message;
      std::memcpy(message.data(), &header, sizeof(header));
      for (size_t j = sizeof(header); j < message.size(); ++j) {
        message[j] = static_cast<std::byte>(random());
      }
      for (uint32_t flips = random() % 3; flips > 0; --flips) {
        message[random() % sizeof(header)] ^= static_cast<std::byte>(1u << random() % 8);
      }
      const bool whole = random() % 2 == 0;
      size_t bytes = random() % message.size();
      if (whole)
        bytes = std::min<size_t>(sizeof(header) + header.key_bytes + header.value_bytes, 4096);
      if (!hostile.Send(std::span(message).first(bytes))) break;
      Step();
    }
  }
  ASSERT_EQ(peer_->Call(Header(Opcode::kPing))->status(), ReplyStatus::kOk);
  ASSERT_TRUE(StepUntil([this] { return stats().connections == 1; }));
  EXPECT_EQ(peer_->Get("anchor"), "value");
  ExpectServing();
}

// A peer that takes no replies fills the server's send queue, but not its memory.
TEST_F(RequestTest, PeerThatTakesNoRepliesIsCutOff) {
  peer_->PostNoMoreReceives();
  for (int i = 0; i < 2000 && !peer_->broken(); ++i) {
    if (!peer_->Send(Header(Opcode::kPing))) break;
    Step();
  }
  EXPECT_TRUE(peer_->WaitBroken());
  ExpectServing();
}

class FewReplyBuffersTest : public ServerTest {
 protected:
  void SetUp() override {
    StartServer([](Server::Options* options) { options->reply_buffers = 1; });
  }
};

TEST_F(FewReplyBuffersTest, ReadersBeyondTheReplyBuffersAreToldToTryAgain) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const std::string value(1000, 'v');  // too long to be sent inline
  ASSERT_EQ(peer.Put("key", value), ReplyStatus::kOk);
  constexpr int kReads = 8;
  for (int i = 0; i < kReads; ++i) {
    RequestHeader get = peer.Header(Opcode::kGet);
    get.key_bytes = 3;
    ASSERT_TRUE(peer.Send(get, "key"));
  }
  ASSERT_TRUE(peer.WaitSent()) << "the server finds all of them at once";
  int found = 0;
  int told_to_try_again = 0;
  for (int i = 0; i < kReads; ++i) {
    const auto reply = peer.Receive();
    ASSERT_TRUE(reply);
    found += reply->status() == ReplyStatus::kOk && reply->value == value;
    told_to_try_again += reply->status() == ReplyStatus::kTryAgain;
  }
  EXPECT_GE(found, 1);
  EXPECT_GE(told_to_try_again, 1);
  EXPECT_EQ(found + told_to_try_again, kReads);
  EXPECT_EQ(peer.Get("key"), value);
}

}  // namespace
}  // namespace gannet
