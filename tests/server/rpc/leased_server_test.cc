// A server that leases its most popular items: what clients are told and READ, and what becomes of
// writes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/layout/item_lease_header.h"
#include "common/protocol/client_report.h"
#include "common/protocol/item_leases_reply.h"
#include "common/protocol/touch.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

constexpr uint32_t kItemLeaseMs = 20;

// Whatever it takes is safe at once.
class Published : public ChangeConsumer {
 public:
  bool Take(const Change& /*change*/, ChangePlace* place) override {
    end_ = place->end;
    return true;
  }
  uint64_t safe() const override { return end_; }

 private:
  uint64_t end_ = 0;
};

class LeasedServerTest : public ServerTest, private ServerTimeSource {
 protected:
  void Start(uint32_t lease_ms = kItemLeaseMs) {
    StartServer([lease_ms](Server::Options* options) {
      options->item_lease_ms = lease_ms;
      options->leased_items = 16;
    });
    server().store().UseClock(this);
    ASSERT_TRUE(peer_.emplace(this).Connect());
  }
  void TearDown() override {
    peer_.reset();
    ServerTest::TearDown();
  }
  void Step() override {
    ServerTest::Step();
    if (server().waiting() > 0 && while_waiting_) while_waiting_();
  }
  ItemLeasesReply Ask() {
    const auto reply = peer_->Call(peer_->Header(Opcode::kItemLeases));
    EXPECT_EQ(reply.value().status(), ReplyStatus::kOk);
    EXPECT_EQ(reply.value().value.size(), sizeof(ItemLeasesReply));
    ItemLeasesReply leases{};
    std::memcpy(&leases, reply.value().value.data(), sizeof(leases));
    return leases;
  }
  ItemLeaseHeader ReadHeader(const ItemLeasesReply& leases) {
    ItemLeaseHeader header{};
    uint64_t* const words = &header.checksum;
    for (size_t i = 0; i < sizeof(header) / sizeof(uint64_t); ++i) {
      words[i] = peer_->ReadAt(leases.address + i * sizeof(uint64_t), leases.rkey).value();
    }
    return header;
  }
  uint64_t FirstWord(const ItemLeasesReply& leases) {
    return peer_->ReadAt(leases.address + sizeof(ItemLeaseHeader), leases.rkey).value();
  }
  ReplyHeader Write(Opcode opcode, std::string_view key, std::string_view value = "",
                    uint8_t flags = 0) {
    RequestHeader header = peer_->Header(opcode, flags);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = static_cast<uint32_t>(value.size());
    return peer_->Call(header, key, value).value().header;
  }
  // It is renewed twice, and steps take a little time.
  static void ExpectAtLeastHalf(uint64_t left_ms) {
    EXPECT_LE(left_ms, kItemLeaseMs);
    EXPECT_GE(left_ms, kItemLeaseMs / 2 - 3);
  }
  // Puts an item, and tells that it was READ often enough.
  void BePopular(std::string_view key, std::string_view value) {
    const ReplyHeader put = Write(Opcode::kPut, key, value);
    ASSERT_EQ(put.status, 0);
    for (int i = 0; i < 4; ++i) Tell(0, Touch::Of(Slot(put.write.slot).offset(), 250));
  }
  // Reports so many hits, and tells of one item.
  void Tell(uint64_t hits, Touch touch) {
    const ClientCounts counts = {.hits = hits, .misses = 0, .reads = hits, .by_rpc = 0};
    std::string news(reinterpret_cast<const char*>(&counts), sizeof(counts));
    news.append(reinterpret_cast<const char*>(&touch), sizeof(touch));
    RequestHeader heartbeat{};
    heartbeat.value_bytes = static_cast<uint32_t>(news.size());
    heartbeat.heartbeat.report_bytes = sizeof(counts);
    ASSERT_EQ(peer_->Call(heartbeat, "", news).value().status(), ReplyStatus::kOk);
  }
  // And has it leased.
  void MakePopular(std::string_view key, std::string_view value) {
    BePopular(key, value);
    Pass(kNsPerSecond / 2);
    Advance(kNsPerMs);
    Step();
  }

  ServerTime Time() const override { return now().server_time; }

  std::function<void()> while_waiting_;
  std::optional<RawPeer> peer_;
};

TEST_F(LeasedServerTest, WithoutLeasesThereIsNothingToRead) {
  Start(0);
  EXPECT_EQ(peer_->grant().features & kGrantItemLeases, 0);
  const ItemLeasesReply leases = Ask();
  EXPECT_EQ(leases.address, 0u);
  EXPECT_EQ(leases.words, 0u);
}

TEST_F(LeasedServerTest, WhatIsReadMostIsLeased) {
  Start();
  EXPECT_NE(peer_->grant().features & kGrantItemLeases, 0);
  EXPECT_NE(peer_->grant().features & kGrantEvicts, 0) << "it wants touches";
  const ItemLeasesReply leases = Ask();
  EXPECT_EQ(leases.words, 16u);
  EXPECT_EQ(leases.lease_ms, kItemLeaseMs);
  EXPECT_TRUE(ItemLeaseValid(ReadHeader(leases), peer_->grant().incarnation));
  EXPECT_EQ(FirstWord(leases), 0u);
  MakePopular("key", "value");
  const ItemLeaseHeader header = ReadHeader(leases);
  EXPECT_TRUE(ItemLeaseValid(header, peer_->grant().incarnation));
  ExpectAtLeastHalf(header.end_ms - now().server_time.ms());
  EXPECT_NE(FirstWord(leases), 0u);
  // Renewed, as long as the server runs.
  Advance(kItemLeaseMs / 4 * kNsPerMs);
  Step();
  ExpectAtLeastHalf(ReadHeader(leases).end_ms - now().server_time.ms());
}

// A client that READs a lot tells of a part of it.
TEST_F(LeasedServerTest, AUseThatIsToldStandsForThoseThatAreNot) {
  Start();
  BePopular("often", "value");
  const uint64_t offset = Slot(Write(Opcode::kPut, "key", "value").write.slot).offset();
  const auto leased = [this] {
    Pass(kNsPerSecond);
    return server().store().leases()->counts().leased;
  };
  Tell(0, Touch::Of(offset, 200));
  EXPECT_EQ(leased(), 1u) << "they count as 200";
  Tell(9 * 1'200, Touch::Of(offset, 100));  // 1,200 were told
  EXPECT_EQ(leased(), 2u) << "these count as 900";
}

// A worker may have looked at the key before, and write it without another look.
TEST_F(LeasedServerTest, NothingIsLeasedBeforeEachWorkerKnows) {
  Start();
  BePopular("key", "value");
  const auto leased = [this] { return server().store().leases()->counts().leased; };
  for (int i = 0; i < 10 && leased() == 0; ++i) {
    Advance(kNsPerSecond / 2);
    server().Poll(now());
  }
  EXPECT_EQ(leased(), 0u);
  Pass(kNsPerSecond / 2);
  EXPECT_EQ(leased(), 1u);
}

TEST_F(LeasedServerTest, NobodyElseWritesThem) {
  Start();
  const ItemLeasesReply leases = Ask();
  EXPECT_FALSE(peer_->WriteAt(leases.address, leases.rkey, UINT64_MAX));
  EXPECT_TRUE(peer_->WaitBroken());
}

TEST_F(LeasedServerTest, AWriteIsToldHowLongItWaits) {
  Start();
  MakePopular("key", "value");
  ReplyHeader put = Write(Opcode::kPut, "key", "other");
  EXPECT_EQ(put.status, static_cast<uint8_t>(ReplyStatus::kTryAgain));
  EXPECT_EQ(put.write.version, kPutOffInOrder);
  ExpectAtLeastHalf(put.words[kPutOffMsWord]);
  EXPECT_EQ(peer_->Get("key"), "value");
  EXPECT_EQ(FirstWord(Ask()), 0u);
  // Later writes of the key keep their order.
  Advance(kItemLeaseMs * kNsPerMs);
  put = Write(Opcode::kPut, "key", "later");
  EXPECT_EQ(put.status, static_cast<uint8_t>(ReplyStatus::kTryAgain));
  EXPECT_EQ(Write(Opcode::kPut, "key", "other", kSentAgain).status, 0);
  EXPECT_EQ(Write(Opcode::kPut, "key", "later").status, 0);
  EXPECT_EQ(peer_->Get("key"), "later");
}

// A server that records its changes has fast paths of its own.
TEST_F(LeasedServerTest, ARecordedWriteWaitsToo) {
  for (const auto need : {ChangeStream::Need::kHears, ChangeStream::Need::kRequired}) {
    Start();
    Published journal;
    server().AddConsumer(&journal, need);
    MakePopular("key", "value");
    EXPECT_EQ(Write(Opcode::kPut, "key", "other").status,
              static_cast<uint8_t>(ReplyStatus::kTryAgain));
    EXPECT_EQ(peer_->Get("key"), "value");
    Advance(kItemLeaseMs * kNsPerMs);
    EXPECT_EQ(Write(Opcode::kPut, "key", "other", kSentAgain).status, 0);
    EXPECT_EQ(peer_->Get("key"), "other");
    peer_.reset();
    StopServer();
  }
}

TEST_F(LeasedServerTest, AValueThatTheServerFetchesWaitsBeforeThat) {
  Start();
  MakePopular("key", "value");
  RequestHeader header = peer_->Header(Opcode::kPut, kValueInBuffer);
  header.key_bytes = 3;
  header.value_bytes = 10'000;
  header.write.buffer_address = 16;  // not its memory: a READ would break the connection
  const ReplyHeader put = peer_->Call(header, "key").value().header;
  EXPECT_EQ(put.status, static_cast<uint8_t>(ReplyStatus::kTryAgain));
  ExpectAtLeastHalf(put.words[kPutOffMsWord]);
  EXPECT_FALSE(peer_->broken());
}

TEST_F(LeasedServerTest, AFlushComesAgain) {
  Start();
  MakePopular("key", "value");
  const auto flush = [this](uint64_t position) {
    RequestHeader header = peer_->Header(Opcode::kFlush);
    header.flush.position = position;
    return peer_->Call(header).value().header;
  };
  uint64_t position = 0;
  ReplyHeader step = flush(position);
  for (; step.status == 0 && step.flush.next != 0; step = flush(position)) {
    position = step.flush.next;
  }
  EXPECT_EQ(step.status, static_cast<uint8_t>(ReplyStatus::kTryAgain));
  EXPECT_EQ(peer_->Get("key"), "value");
  Advance(kItemLeaseMs * kNsPerMs);
  for (step = flush(position); step.status == 0 && step.flush.next != 0; step = flush(position)) {
    position = step.flush.next;
  }
  EXPECT_EQ(step.status, 0);
  EXPECT_EQ(peer_->Get("key"), std::nullopt);
}

// Their process may have ended a moment ago, with leases.
TEST_F(LeasedServerTest, NobodyConnectsBeforeTheLeasesOfAFormerProcessAreOver) {
  StartServer([](Server::Options* options) { options->former_leases_ms = 100; });
  server().Poll(now());
  const Now began = now();
  while_waiting_ = [this] { Advance(30 * kNsPerMs); };
  EXPECT_TRUE(peer_.emplace(this).Connect());
  EXPECT_EQ(now().boot - began.boot, 120 * kNsPerMs);
  while_waiting_ = [] { ADD_FAILURE() << "it waits once"; };
  RawPeer other(this);
  EXPECT_TRUE(other.Connect());
}

}  // namespace
}  // namespace gannet
